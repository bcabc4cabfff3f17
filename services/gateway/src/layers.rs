//! What happens to every request, before its endpoint and after.

use std::{net::IpAddr, panic::AssertUnwindSafe, time::Instant};

use axum::{
    body::{Body, HttpBody as _},
    extract::{MatchedPath, OriginalUri, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::{FutureExt as _, StreamExt as _};
use redial_proto::{Code, TokenId, UserRole, limits::shorten};
use uuid::Uuid;

use crate::{
    access_log::{AccessLine, Asker},
    extract::{is_safe, text},
    gateway::{Gateway, Shared},
    identity::Identity,
    limits::LARGE_BYTES,
    openai_error,
    pace::{Pace, Paced},
    problem::{PROBLEM_JSON, Problem, Told},
    refusals::Refusal,
    server::HEAD_BYTES,
};

const REQUEST_ID: &str = "x-request-id";
/// Bytes of an answer that is not gone as soon as it is written.
const UNSENT_BYTES: u64 = 64 * 1024;

/// The roles of an endpoint, of which a token needs one.
#[derive(Clone)]
pub(crate) struct Required {
    pub(crate) gateway: Shared,
    pub(crate) roles: &'static [UserRole],
}

/// Checks the token of a request before its endpoint reads anything.
pub(crate) async fn require(State(required): State<Required>, mut request: Request, next: Next) -> Response {
    let Required { gateway, roles } = required;
    let (method, credentials) = (request.method().clone(), credentials(request.headers()));
    let checked = async {
        let who = gateway.tokens.identify(&gateway.store, &gateway.rights, &credentials).await?;
        check_page(&who, &method, &credentials)?;
        who.in_role(roles)?;
        let who = who.let_in(roles);
        who.limits.begin().await?;
        // It may have waited for its turn.
        gateway.rights.check(&who)?;
        Ok::<_, Problem>(who)
    };
    match checked.await {
        Ok(who) => {
            let pace = request.extensions().get::<Pace>().cloned();
            if let Some(asker) = request.extensions().get::<Asker>() {
                asker.set(&who);
            }
            request.extensions_mut().insert(who.clone());
            let response = next.run(request).await;
            match (response.body().size_hint().exact(), who.token.clone()) {
                (None, Some(token)) => end_with(response, gateway, who, token),
                (Some(bytes), _) if bytes > UNSENT_BYTES => {
                    let shares = (who.limits.take_share(), who.limits.take_large());
                    keep(response, bytes, (shares, pace_of(pace, bytes)))
                }
                _ => response,
            }
        }
        Err(problem) => problem.into_response(),
    }
}

/// Returns the headers that say who sent a request.
fn credentials(headers: &HeaderMap) -> HeaderMap {
    let own = |name: &HeaderName| {
        *name == header::AUTHORIZATION
            || *name == header::COOKIE
            || *name == header::ORIGIN
            || *name == "sec-fetch-site"
    };
    headers.iter().filter(|(name, _)| own(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Fails if a browser's session changes something and nothing proves that a page of the gateway itself sent the request: browsers
/// say where it comes from. That it is no other site is checked for every request.
fn check_page(who: &Identity, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let is_told = headers.contains_key(header::ORIGIN) || text(headers, "sec-fetch-site") == Some("same-origin");
    if who.session.is_none() || is_safe(method) || is_told {
        return Ok(());
    }
    let message = "a session changes something only from the gateway's own pages, which the header Origin or Sec-Fetch-Site proves; \
                   allowed for programs: Authorization: Bearer";
    Err(Problem::new(Code::Forbidden, message))
}

/// Counts a page of the console as under way until it was sent. Who asks for it is checked by what it is made of.
pub(crate) async fn page(State(gateway): State<Shared>, request: Request, next: Next) -> Response {
    let credentials = credentials(request.headers());
    let pace = request.extensions().get::<Pace>().cloned();
    let share = match gateway.tokens.identify(&gateway.store, &gateway.rights, &credentials).await {
        Ok(who) => {
            if let Some(asker) = request.extensions().get::<Asker>() {
                asker.set(&who);
            }
            match who.limits.page().await {
                Ok(share) => Some(share),
                Err(problem) => return problem.into_response(),
            }
        }
        Err(_) => None,
    };
    let response = next.run(request).await;
    match response.body().size_hint().exact() {
        Some(bytes) if bytes > UNSENT_BYTES => keep(response, bytes, (share, pace_of(pace, bytes))),
        _ => response,
    }
}

/// Counts a large answer as under way until it was sent: whoever asks for many and reads none would fill the memory.
fn keep(response: Response, bytes: u64, shares: impl Send + 'static) -> Response {
    let mut response = response.map(|body| {
        Body::from_stream(body.into_data_stream().inspect(move |_| {
            let _kept = &shares;
        }))
    });
    response.headers_mut().insert(header::CONTENT_LENGTH, bytes.into());
    response
}

/// Demands that a large answer is taken at the least rate.
fn pace_of(pace: Option<Pace>, bytes: u64) -> Option<Paced> {
    pace.filter(|_| bytes > LARGE_BYTES as u64).map(|pace| pace.begin())
}

/// Ends a stream with the token that opened it, and with its user's right: who lost them must not go on to read.
fn end_with(response: Response, gateway: Shared, who: Identity, token: TokenId) -> Response {
    let ended = async move {
        tokio::select! {
            () = gateway.tokens.until_ended(&gateway.store, &token) => {}
            () = gateway.rights.until_lost(&who) => {}
            () = signed_out(&gateway, &who) => {}
        }
    };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(ended))))
}

/// Returns once the session of a request has ended; never without one.
async fn signed_out(gateway: &Gateway, who: &Identity) {
    match who.session {
        Some(session) => gateway.tokens.until_signed_out(&gateway.store, session).await,
        None => std::future::pending().await,
    }
}

/// Gives the request an id, checks who it is addressed to, writes problem documents, counts: the outermost layer.
pub(crate) async fn finish(State(gateway): State<Shared>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = request_id(request.headers());
    let instance = request.uri().path().to_owned();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let peer = request.extensions().get::<IpAddr>().copied();
    let asker = Asker::default();
    request.extensions_mut().insert(asker.clone());
    let mut line = AccessLine {
        is_wanted: gateway.config.access_log,
        request_id: id.clone(),
        method: label(&method).to_owned(),
        route: route.clone(),
        asker,
        began,
        status: None,
    };
    let checked = check_head(&request).and_then(|()| check_repeated(request.headers()));
    let checked = checked.and_then(|()| check_address(&gateway, &request));
    let response = match checked {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let (mut response, refusal) = as_problem(response, &instance, &id);
    if let Some(refusal) = refusal {
        gateway.refusals.add(peer, *refusal);
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // A browser that was signed out must not show it again.
    if instance.starts_with("/v1/") {
        response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    }
    let (status, took) = (response.status(), began.elapsed());
    line.status = Some(status.as_u16());
    gateway.stats.answered(route.as_deref().unwrap_or("other"), label(&method), status.as_u16(), took);
    // What cannot be served now is logged where that is found, and not for each request.
    if status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE {
        tracing::warn!(%method, path = instance, %status, request_id = id, "Answered a request with a server error");
    }
    response
}

/// Names the method for metrics and access log. Any word may be one, and each would be counted apart, without end.
fn label(method: &Method) -> &str {
    let is_known =
        [Method::GET, Method::POST, Method::PATCH, Method::DELETE, Method::PUT, Method::HEAD, Method::OPTIONS]
            .contains(method);
    if is_known { method.as_str() } else { "other" }
}

/// Turns a panic, which is a bug, into one failed request.
pub(crate) async fn catch_panic(request: Request, next: Next) -> Response {
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("A request panicked");
        Problem::new(Code::Internal, "a bug; the gateway's log has the reason").into_response()
    })
}

pub(crate) async fn not_found(OriginalUri(uri): OriginalUri) -> Problem {
    let path = shorten(uri.path(), 200);
    Problem::new(Code::NotFound, format!("nothing is at {path}; /openapi.json lists all addresses"))
}

/// Returns the id that the client chose, if it is short and plain; else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let fits = |id: &&str| {
        (1..=100).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    text(headers, REQUEST_ID).filter(fits).map_or_else(|| Uuid::now_v7().to_string(), str::to_owned)
}

/// Fails if the head is too large. The HTTP library refuses some of these before, but not all.
fn check_head(request: &Request) -> Result<(), Problem> {
    // Besides them a header has a colon, a blank and a line break; the first line has two blanks, the version and a line break, and
    // an empty line is the last.
    let line = request.method().as_str().len() + request.uri().to_string().len() + 14;
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let bytes = line + headers.sum::<usize>();
    if bytes <= HEAD_BYTES {
        return Ok(());
    }
    let message = format!("the head of the request has {bytes} bytes; allowed: {HEAD_BYTES}");
    Err(Problem::new(Code::TooLarge, message).with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE))
}

/// Fails if a header is repeated of which only the first would count: a proxy before the gateway may have gone by another one.
fn check_repeated(headers: &HeaderMap) -> Result<(), Problem> {
    for name in ["Host", "Authorization", "Idempotency-Key"] {
        let count = headers.get_all(name).iter().count();
        if count > 1 {
            let message = format!("the header {name} is given {count} times; allowed: once");
            return Err(Problem::new(Code::InvalidMessage, message));
        }
    }
    Ok(())
}

/// Fails for a request that a page of another site sent, or whose `Host` is not this gateway: a name that an attacker lets point
/// to this machine would make a browser send it here.
fn check_address(gateway: &Gateway, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let host = host(headers, request.uri());
    // Probes of an orchestrator name an address, not a host; these answers hold nothing of anybody.
    let is_probe = matches!(request.uri().path(), "/healthz" | "/readyz");
    if !is_probe && !is_own_host(gateway, host.as_ref()) {
        let shown = host.map_or("absent".to_owned(), |host| format!("{:?}", shorten(host.as_str(), 100)));
        let message =
            format!("the header Host is {shown}; allowed: this machine's loopback, and what gateway_hosts names");
        return Err(Problem::new(Code::Forbidden, message).with_status(StatusCode::MISDIRECTED_REQUEST));
    }
    let is_foreign = match text(headers, "origin") {
        Some(origin) => origin.parse::<Uri>().ok().and_then(|origin| origin.authority().cloned()) != host,
        None => text(headers, "sec-fetch-site").is_some_and(|site| matches!(site, "cross-site" | "same-site")),
    };
    if is_foreign && !is_safe(request.method()) {
        let message = "a page of another site sent this request; allowed: the gateway's own pages, and programs";
        return Err(Problem::new(Code::Forbidden, message));
    }
    Ok(())
}

fn host(headers: &HeaderMap, uri: &Uri) -> Option<Authority> {
    let header = text(headers, "host").and_then(|host| host.parse().ok());
    uri.authority().cloned().or(header)
}

fn is_own_host(gateway: &Gateway, host: Option<&Authority>) -> bool {
    let config = &gateway.config;
    if config.hosts.is_empty() && !config.listen.ip().is_loopback() {
        return true;
    }
    let Some(host) = host else { return false };
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    let is_loopback = name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    is_loopback || config.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// Returns the response, with the body of a problem document if it is one; and the token that it refuses.
fn as_problem(response: Response, instance: &str, request_id: &str) -> (Response, Option<Box<Refusal>>) {
    let problem = response.extensions().get::<Told>().and_then(Told::take);
    let problem = match (problem, response.status()) {
        (Some(problem), _) => problem,
        (None, StatusCode::METHOD_NOT_ALLOWED) => {
            // The router adds the header afterwards.
            let message = "this address does not take the method; allowed: those in the header Allow of this answer";
            Problem::new(Code::MethodNotAllowed, message)
        }
        _ => return (response, None),
    };
    let refusal = problem.refusal.clone();
    let (mut parts, _) = response.into_parts();
    parts.status = problem.status();
    let (media, body) = if openai_error::is_for(instance) {
        ("application/json", openai_error::body(&problem))
    } else {
        (PROBLEM_JSON, serde_json::to_vec(&problem.document(instance, request_id)).unwrap_or_default())
    };
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    parts.headers.remove(header::CONTENT_LENGTH);
    (Response::from_parts(parts, Body::from(body)), refusal)
}
