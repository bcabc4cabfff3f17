//! `/console/sign-in`: with a token, for a browser that has no session.

use axum::{
    Router,
    extract::{DefaultBodyLimit, Form, FromRequestParts as _, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, request::Parts},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use serde::Deserialize;

use crate::{
    client::Api,
    console::Console,
    failure::Failure,
    filter::Filter,
    page::{self, Shell, Visit},
};

/// How the cookie with a session begins.
const SESSION: &str = "redial_session=";
/// Bytes of a form that anybody may send.
const FORM: usize = 16 * 1024;

pub(super) fn router() -> Router<Console> {
    Router::new()
        .route("/console/sign-in", get(form).post(sign_in).layer(DefaultBodyLimit::max(FORM)))
        .route("/console/sign-out", post(sign_out))
}

#[derive(askama::Template)]
#[template(path = "sign_in.html")]
struct Page {
    shell: Shell,
    next: String,
    wrong: Option<String>,
}

/// A token, and where to go on.
#[derive(Deserialize)]
struct SignIn {
    token: String,
    #[serde(default)]
    next: String,
}

async fn form(api: Api, uri: Uri, headers: HeaderMap) -> Response {
    let next = Filter::of(&uri.to_string()).get("next").to_owned();
    if is_from_elsewhere(&headers) {
        return once_more(&next);
    }
    let has_session = headers.get_all(header::COOKIE).iter().any(|cookies| {
        cookies.to_str().is_ok_and(|cookies| cookies.split(';').any(|pair| pair.trim().starts_with(SESSION)))
    });
    if !has_session || api.send(Method::GET, "/v1/session", &[]).await.status() != StatusCode::UNAUTHORIZED {
        return shown(&headers, next, None);
    }
    // It has ended: a browser that keeps it would be sent here for ever, also where nobody has to sign in.
    let mut response = shown(&headers, next, Some("The session has ended.".to_owned()));
    let gone = HeaderValue::from_static("redial_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    response.headers_mut().insert(header::SET_COOKIE, gone);
    response
}

/// Says whether a link is from another site: the browser did not send the session's cookie, which is for this site
/// only. The page that it gets asks again, from this site.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site" || site == "same-site")
}

fn once_more(next: &str) -> Response {
    let mut response = (StatusCode::OK, "Redial: one moment\n").into_response();
    if let Ok(refresh) = format!("0; url={}", own_page(next)).parse() {
        response.headers_mut().insert("refresh", refresh);
    }
    response
}

fn shown(headers: &HeaderMap, next: String, wrong: Option<String>) -> Response {
    let theme = page::theme(headers);
    let is_wrong = wrong.is_some();
    let mut response =
        page::respond(&Page { shell: Shell { theme, ..Shell::default() }.titled("Sign in"), next, wrong });
    if is_wrong {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
    }
    response
}

async fn sign_in(State(console): State<Console>, parts: Parts, Form(body): Form<SignIn>) -> Response {
    let mut parts = parts;
    let Ok(api) = Api::from_request_parts(&mut parts, &console).await;
    let bearer = format!("Bearer {}", body.token.trim());
    let answer = api.send(Method::POST, "/v1/session", &[(header::AUTHORIZATION, bearer)]).await;
    match (answer.status(), answer.headers().get(header::SET_COOKIE)) {
        (StatusCode::CREATED, Some(cookie)) => {
            let mut response = Redirect::to(own_page(&body.next)).into_response();
            response.headers_mut().insert(header::SET_COOKIE, cookie.clone());
            response
        }
        (StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS, _) => {
            let wrong = "The token could not be checked at the moment. Try again.".to_owned();
            shown(&parts.headers, body.next, Some(wrong))
        }
        (StatusCode::CONFLICT, _) => {
            let wrong =
                "This is no token: those begin with rdl_. On this machine the gateway asks for none; /console is open.";
            shown(&parts.headers, body.next, Some(wrong.to_owned()))
        }
        _ => {
            let wrong = "This token is unknown, expired or revoked, or its user is gone. It begins with rdl_.";
            shown(&parts.headers, body.next, Some(wrong.to_owned()))
        }
    }
}

async fn sign_out(visit: Visit) -> Response {
    let answer = visit.api.send(Method::DELETE, "/v1/session", &[]).await;
    if !answer.status().is_success() {
        let detail = "The session could not be ended and is still valid. Try again.";
        return visit.done(Err(Failure::new(answer.status(), detail)));
    }
    let mut response = Redirect::to("/console/sign-in").into_response();
    if let Some(cookie) = answer.headers().get(header::SET_COOKIE) {
        response.headers_mut().insert(header::SET_COOKIE, cookie.clone());
    }
    response
}

/// Returns a page of the console: an address must not lead elsewhere.
pub(crate) fn own_page(next: &str) -> &str {
    let is_own = next == "/console" || next.starts_with("/console/") || next.starts_with("/console?");
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let path = next.split('?').next().unwrap_or_default().to_ascii_lowercase();
    let climbs = path.contains("..") || path.contains("%2e") || path.contains("//");
    if is_own && is_plain && !climbs { next } else { "/console" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_to_a_page_of_the_console() {
        for next in ["/console", "/console/tasks?state=failed", "/console?x"] {
            assert_eq!(own_page(next), next);
        }
        for next in [
            "",
            "//evil.example",
            "https://evil.example",
            "/consolex",
            "/\\evil",
            "/console/\r\nx: y",
            "javascript:1",
            "/console/../docs",
            "/console/%2E%2e/docs",
            "/console/%2e%2e//evil.example",
            "/console/\u{1}",
            "/console/\u{e9}",
        ] {
            assert_eq!(own_page(next), "/console", "{next}");
        }
    }
}
