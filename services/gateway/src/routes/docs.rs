//! `/docs`: a page to try the API. It reads `/openapi.json`, and loads nothing from elsewhere.

use axum::{
    http::header,
    response::{IntoResponse, Response},
};

use crate::endpoint::Endpoint;

const TAG: &str = "operations";
/// The page loads and asks only its own gateway, runs no inline script, and cannot be framed: it knows a token.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/docs", async || file("text/html", include_str!("docs/page.html")))
            .about(TAG, "get_docs", "A page to try the API")
            .answer_as::<String>(200, "The page.", "text/html"),
        Endpoint::get("/docs/page.js", async || file("text/javascript", include_str!("docs/page.js")))
            .about(TAG, "get_docs_script", "The script of the page")
            .answer_as::<String>(200, "The script.", "text/javascript"),
        Endpoint::get("/docs/page.css", async || file("text/css", include_str!("docs/page.css")))
            .about(TAG, "get_docs_style", "The style of the page")
            .answer_as::<String>(200, "The style.", "text/css"),
    ]
}

fn file(media: &str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, format!("{media}; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, POLICY.to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
        (header::CACHE_CONTROL, "no-cache".to_owned()),
    ];
    (headers, text).into_response()
}
