//! Where things are: `/`, the OpenAPI document, and the pages that explain errors.

use std::sync::LazyLock;

use axum::{
    body::Bytes,
    http::{HeaderMap, header},
    response::{IntoResponse, Redirect, Response},
};
use redial_proto::{Code, limits::shorten};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    endpoint::Endpoint,
    extract::{Name, text},
    problem::Problem,
};

const TAG: &str = "operations";

/// The texts of the pages, by code.
macro_rules! pages {
    ($($code:literal),* $(,)?) => {
        const PAGES: &[(&str, &str)] =
            &[$(($code, include_str!(concat!("../../../../docs/errors/", $code, ".md")))),*];
    };
}

pages![
    "being_erased",
    "call_not_found",
    "forbidden",
    "idempotency_conflict",
    "incompatible_version",
    "internal",
    "invalid_agent",
    "invalid_arguments",
    "invalid_configuration",
    "invalid_manifest",
    "invalid_message",
    "invalid_value",
    "method_not_allowed",
    "missing_program",
    "not_found",
    "output_incomplete",
    "rate_limited",
    "redrive_not_found",
    "task_not_found",
    "token_not_found",
    "too_large",
    "unauthenticated",
    "unavailable",
    "unknown_agent",
    "unknown_model",
    "unknown_tool",
    "unsupported_media_type",
    "webhook_not_found",
    "wrong_state",
];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/", root)
            .about(TAG, "get_root", "Where things are")
            .description("A browser (`Accept: text/html`) is led to the console.")
            .answer::<Places>(200, "The addresses to begin with.")
            .empty_answer(303, "The console."),
        Endpoint::get("/openapi.json", openapi)
            .about(TAG, "get_openapi", "This document")
            .answer::<serde_json::Value>(200, "OpenAPI 3.1."),
        Endpoint::get("/errors/{code}", error)
            .about(TAG, "get_error_page", "What an error code means, and what to do")
            .answer_as::<String>(200, "The page, as Markdown.", "text/markdown"),
    ]
}

/// Where things are.
#[derive(Serialize, JsonSchema)]
struct Places {
    /// Describes every address of the API.
    openapi: &'static str,
    /// A page to try the API.
    docs: &'static str,
    /// For people with a browser.
    console: &'static str,
    /// What an error code means.
    errors: &'static str,
    /// Whether the gateway lives.
    health: &'static str,
    /// Whether requests can be answered.
    ready: &'static str,
}

const PLACES: Places = Places {
    openapi: "/openapi.json",
    docs: "/docs",
    console: "/console",
    errors: "/errors/{code}",
    health: "/healthz",
    ready: "/readyz",
};

async fn root(headers: HeaderMap) -> Response {
    let vary = [(header::VARY, "accept")];
    if text(&headers, "accept").is_some_and(|accepted| accepted.contains("text/html")) {
        return (vary, Redirect::to(PLACES.console)).into_response();
    }
    (vary, axum::Json(PLACES)).into_response()
}

async fn openapi() -> Response {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| crate::openapi().into());
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.clone()).into_response()
}

async fn error(Name(code): Name) -> Result<Response, Problem> {
    let page = PAGES.iter().find(|(name, _)| *name == code);
    let not_found = || Problem::new(Code::NotFound, format!("no error has the code {:?}", shorten(&code, 100)));
    let (_, page) = page.ok_or_else(not_found)?;
    Ok(([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], *page).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_page() {
        let mut codes = Code::ALL.map(Code::as_str).to_vec();
        codes.sort_unstable();
        assert_eq!(PAGES.iter().map(|(code, _)| *code).collect::<Vec<_>>(), codes);
    }
}
