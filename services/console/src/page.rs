//! What all pages have: the frame, and the headers of their answers.

use std::sync::Arc;

use askama::Template;
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header, request::Parts},
    response::{IntoResponse, Redirect, Response},
    routing::{MethodRouter, get},
};
use redial_api::{ProblemField, WhoAsks};
use redial_proto::UserRole;

use crate::{client::Api, console::Console, failure::Failure, show};

/// A page loads from its own gateway only, and runs no script or style that is written into it. Nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The theme that a visitor chose is kept in this cookie.
pub(crate) const THEME: &str = "redial_theme";

/// One visit: the API with the visitor's credentials, and what the frame of the page shows.
pub(crate) struct Visit {
    pub(crate) api: Api,
    pub(crate) shell: Shell,
    /// The address that was asked for, with its query.
    pub(crate) here: String,
}

impl FromRequestParts<Console> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Response> {
        let Ok(api) = Api::from_request_parts(parts, console).await;
        // A page that answers a form goes on at the page with the form.
        let asked = parts.uri.path_and_query().map_or("/console", |here| here.as_str()).to_owned();
        let here = if parts.method == axum::http::Method::GET { asked } else { form_of(parts.uri.path()).to_owned() };
        let theme = theme(&parts.headers);
        let mut shell = Shell { theme, here: here.clone(), ..Shell::default() };
        match api.get::<WhoAsks>("/v1/session").await {
            Ok(who) => shell.who = Some(who),
            Err(failure) => return Err(failure_page(&failure, shell, &here)),
        }
        shell.section = section(&parts.uri);
        Ok(Self { api, shell, here })
    }
}

/// Returns the page with the form that is sent to an address.
fn form_of(path: &str) -> &str {
    let parent = |path: &'_ str| path.rsplit_once('/').map_or("/console".len(), |(parent, _)| parent.len());
    match path {
        path if path.starts_with("/console/settings/tokens") => "/console/settings",
        "/console/sign-out" | "/console/theme" => "/console",
        "/console/failed/count" => "/console/failed",
        path if path.ends_with("/cancel") || path.ends_with("/stop") => &path[..parent(path)],
        path => path,
    }
}

fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
}

pub(crate) fn theme(headers: &HeaderMap) -> Option<String> {
    cookie(headers, THEME).filter(|theme| matches!(theme.as_str(), "dark" | "light"))
}

/// Returns the part of the console that an address belongs to.
fn section(uri: &Uri) -> &'static str {
    let part = uri.path().trim_start_matches("/console").trim_start_matches('/').split('/').next().unwrap_or_default();
    SECTIONS.iter().map(|(section, ..)| *section).find(|section| *section == part).unwrap_or_default()
}

/// The parts of the console: their address, their name, and the key that goes there after `g`.
pub(crate) const SECTIONS: [(&str, &str, char); 12] = [
    ("", "Overview", 'o'),
    ("tasks", "Tasks", 't'),
    ("calls", "Calls", 'c'),
    ("failed", "Failed", 'f'),
    ("unknown", "Unknown", 'u'),
    ("conversations", "Conversations", 'v'),
    ("tools", "Tools", 'l'),
    ("models", "Models", 'm'),
    ("workers", "Workers", 'w'),
    ("redrives", "Redrives", 'r'),
    ("audit", "Audit", 'a'),
    ("settings", "Settings", 's'),
];

#[derive(Clone, Debug, Default)]
pub(crate) struct Shell {
    pub(crate) title: String,
    pub(crate) section: &'static str,
    pub(crate) theme: Option<String>,
    pub(crate) who: Option<WhoAsks>,
    pub(crate) here: String,
    /// The stream of events after which the page is asked for again.
    pub(crate) live: Option<String>,
    /// The page is asked for again after so many seconds even without an event; 0: never.
    pub(crate) again: u32,
    pub(crate) asked: Vec<String>,
    pub(crate) notice: Option<String>,
}

impl Shell {
    pub(crate) fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    pub(crate) fn live(self, stream: impl Into<String>) -> Self {
        Self { live: Some(stream.into()), ..self }
    }

    pub(crate) fn again(self, seconds: u32) -> Self {
        Self { again: seconds, ..self }
    }

    pub(crate) fn may(&self, role: &str) -> bool {
        let role = role.parse::<UserRole>();
        role.is_ok_and(|role| self.who.as_ref().is_some_and(|who| who.may(role)))
    }

    pub(crate) fn sections() -> impl Iterator<Item = &'static (&'static str, &'static str, char)> + use<> {
        SECTIONS.iter()
    }

    /// Returns the requests of the page: each as its address and as a command. Who visits is no part of what is shown.
    pub(crate) fn requests(&self) -> Vec<(String, String)> {
        let asked = self.asked.iter().filter(|path| *path != "/v1/session");
        let command = |path: &String| {
            let command = format!("curl -sS -H \"Authorization: Bearer $REDIAL_TOKEN\" \"$REDIAL_URL{path}\"");
            (path.clone(), command)
        };
        asked.map(command).collect()
    }
}

impl Visit {
    pub(crate) fn frame(&self, title: impl Into<String>) -> Shell {
        Shell { asked: self.api.asked(), notice: notice(&self.here), ..self.shell.clone().titled(title) }
    }

    /// Fails unless the visitor has this role.
    pub(crate) fn needs(&self, role: &str) -> Result<(), Failure> {
        if self.shell.may(role) { Ok(()) } else { Err(Failure::forbidden(format!("This needs the role {role}."))) }
    }

    /// Returns the page, or the one about why there is none.
    pub(crate) fn answer<T: Template>(&self, page: Result<T, Failure>) -> Response {
        match page {
            Ok(page) => respond(&page),
            Err(failure) => failure_page(&failure, self.shell.clone(), &self.here),
        }
    }

    /// Goes back, after something was done, to a page that shows it, or what went wrong.
    pub(crate) fn done(&self, done: Result<String, Failure>) -> Response {
        match done {
            Ok(to) => axum::response::Redirect::to(&to).into_response(),
            Err(failure) => failure_page(&failure, self.shell.clone(), &self.here),
        }
    }
}

/// A visit that a page is made of.
pub(crate) type Visiting = Arc<Visit>;

/// Routes the address of a page that is made of nothing but the visit.
pub(crate) fn of<T: Template, F>(page: fn(Visiting) -> F) -> MethodRouter<Console>
where
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    get(move |visit: Visit| async move {
        let visit = Arc::new(visit);
        visit.answer(page(visit.clone()).await)
    })
}

/// Returns what was done, as the address after it says.
fn notice(here: &str) -> Option<String> {
    let (_, query) = here.split_once('?')?;
    let pairs: Vec<(String, String)> = serde_html_form::from_str(query).ok()?;
    let (_, what) = pairs.into_iter().find(|(name, _)| name == "done")?;
    NOTICES.iter().find(|(name, _)| *name == what).map(|(_, text)| (*text).to_owned())
}

/// What can have been done: an address must not put words into the page.
const NOTICES: [(&str, &str); 6] = [
    ("cancelled", "The cancel is on record."),
    ("redriven", "It runs again, as this new call."),
    ("redrive", "The redrive is on record and begins."),
    ("stopped", "The redrive was stopped. Calls that run again already go on."),
    ("erased", "The conversation is erased."),
    ("theme", "The theme is kept in this browser."),
];

pub(crate) fn respond(page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => html_response(html),
        Err(error) => {
            tracing::error!(%error, "A page could not be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn html_response(html: String) -> Response {
    let fixed = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "same-origin"),
        // A page holds what its visitor may see; nothing keeps it.
        (header::CACHE_CONTROL, "no-store"),
    ];
    let mut response = html.into_response();
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Writes a query of these pairs, without those that are empty: `?a=1&b=2`, or nothing.
pub(crate) fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let set = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    let written: Vec<String> = set.map(|(name, value)| format!("{}={}", show::url(name), show::url(value))).collect();
    if written.is_empty() { String::new() } else { format!("?{}", written.join("&")) }
}

/// Makes the page about a failure. `here` is the address that was asked for.
pub(crate) fn failure_page(failure: &Failure, shell: Shell, here: &str) -> Response {
    if failure.is_unauthenticated() {
        return Redirect::to(&format!("/console/sign-in?next={}", show::url(here))).into_response();
    }
    let status = failure.status();
    let (problem, detail) = match failure {
        Failure::Problem(problem) => (Some(problem.as_ref()), &problem.detail),
        Failure::Unreadable(detail) => (None, detail),
    };
    let heading = heading(status);
    let page = FailurePage {
        shell: shell.titled(heading),
        heading,
        detail: show::plain(detail),
        remedy: remedy(status),
        code: problem.map(|problem| problem.code.clone()).unwrap_or_default(),
        request_id: problem.map(|problem| problem.request_id.clone()).unwrap_or_default(),
        errors: problem.map_or(&[], |problem| problem.errors.as_slice()),
    };
    let mut response = respond(&page);
    *response.status_mut() = status;
    response
}

#[derive(askama::Template)]
#[template(path = "failure.html")]
struct FailurePage<'a> {
    shell: Shell,
    heading: &'static str,
    detail: String,
    remedy: &'static str,
    code: String,
    request_id: String,
    errors: &'a [ProblemField],
}

const fn heading(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 422 => "Something here is not allowed",
        403 => "Not allowed",
        404 => "Not on record",
        409 => "It has changed meanwhile",
        429 => "Too many requests",
        503 => "Part of Redial is down",
        _ => "This page could not be made",
    }
}

const fn remedy(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 | 422 => "Go back, correct it, and send it again.",
        403 => "Sign in with a token that has the role, or ask whoever administers Redial for it.",
        404 => "It may belong to another tenant, or its time on record is over (retention), or it was erased.",
        409 => "Go back, look at its state now, and decide again.",
        429 => "Wait a moment. A token has a limit of requests per second.",
        503 => {
            "Nothing is lost: what was accepted is on record. The page comes back by itself once Postgres, NATS and a dispatcher answer."
        }
        _ => "Try again. If it stays, the gateway's log has the reason under the request's id.",
    }
}
