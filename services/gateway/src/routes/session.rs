//! `/v1/session`: sign-in of browsers, and who asks.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use chrono::Utc;
use redial_api::{By, WhoAsks};
use redial_proto::{Code, UserRole};

use crate::{endpoint::Endpoint, extract::text, gateway::Api, identity::Identity, problem::Problem, sessions::cookie};

const TAG: &str = "tokens";

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/v1/session", get)
            .about(TAG, "get_session", "Who asks, and what they may do")
            .roles(&UserRole::ALL)
            .answer::<WhoAsks>(200, "Who asks."),
        Endpoint::post("/v1/session", create)
            .about(TAG, "create_session", "Sign a browser in with a token")
            .description(
                "The answer sets the cookie `redial_session`, which stands for the token for at most 12 hours and ends with it. It is \
                 `HttpOnly` and `SameSite=Strict`; what changes something also needs the header `Origin` or `Sec-Fetch-Site` of the \
                 gateway's own pages.",
            )
            .roles(&UserRole::ALL)
            .answer::<WhoAsks>(201, "Signed in."),
        Endpoint::delete("/v1/session", end)
            .about(TAG, "end_session", "Sign a browser out")
            .roles(&UserRole::ALL)
            .empty_answer(204, "Its session has ended, if it had one."),
    ]
}

fn who_asks(who: &Identity) -> WhoAsks {
    let by = match (&who.token, &who.session) {
        (_, Some(_)) => By::Session,
        (Some(_), None) => By::Token,
        (None, None) => By::Loopback,
    };
    WhoAsks {
        tenant: who.tenant.to_string(),
        user: who.user.to_string(),
        roles: who.roles.iter().copied().collect(),
        by,
        expires_at: who.expires_at,
    }
}

async fn get(Api { who, .. }: Api) -> axum::Json<WhoAsks> {
    axum::Json(who_asks(&who))
}

async fn create(Api { gateway, who }: Api, headers: HeaderMap) -> Result<Response, Problem> {
    if who.session.is_some() {
        let message = "a session cannot prolong itself; allowed: Authorization: Bearer with the token";
        return Err(Problem::new(Code::WrongState, message));
    }
    if who.token.is_none() {
        let message =
            "there is no token to sign in with; allowed: Authorization: Bearer. This gateway asks for none on loopback";
        return Err(Problem::new(Code::WrongState, message));
    }
    let (id, expires_at) = gateway.tokens.sign_in(&gateway.store, &who).await?;
    let seconds = (expires_at - Utc::now()).num_seconds().max(0).unsigned_abs();
    let answer = WhoAsks { by: By::Session, expires_at: Some(expires_at), ..who_asks(&who) };
    let token = who.token.as_ref().map(ToString::to_string);
    tracing::info!(tenant = %who.tenant, user = %who.user, token, "Signed in a browser");
    Ok(with_cookie(
        (StatusCode::CREATED, axum::Json(answer)).into_response(),
        &cookie(&id, seconds, is_https(&headers)),
    ))
}

async fn end(Api { gateway, who }: Api, headers: HeaderMap) -> Result<Response, Problem> {
    gateway.tokens.sign_out(&gateway.store, &who).await?;
    if who.session.is_some() {
        let token = who.token.as_ref().map(ToString::to_string);
        tracing::info!(tenant = %who.tenant, user = %who.user, token, "Signed out a browser");
    }
    Ok(with_cookie(StatusCode::NO_CONTENT.into_response(), &cookie("", 0, is_https(&headers))))
}

/// Says whether the browser speaks HTTPS, as the proxy before the gateway says.
fn is_https(headers: &HeaderMap) -> bool {
    // Several proxies make a list, which begins with what the browser spoke.
    let first = text(headers, "x-forwarded-proto").and_then(|protos| protos.split(',').next());
    first.is_some_and(|proto| proto.trim().eq_ignore_ascii_case("https"))
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
