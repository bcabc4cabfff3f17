//! `/console/settings`: who you are, tokens, webhooks.

use axum::{
    Router,
    extract::{Form, Path},
    response::Response,
    routing::{get, post},
};
use redial_api::{By, CreatedToken, TokenList, WebhookList, WhoAsks};
use redial_proto::{TokenDescendant, TokenExpiry, TokenRevokeReply, TokenState, UserRole, WebhookView};
use serde::Deserialize;
use serde_json::json;

use crate::{
    client::Api,
    console::Console,
    failure::Failure,
    filter::Filter,
    page::{Shell, Visit},
    show,
};

const PATH: &str = "/console/settings";

pub(super) fn router() -> Router<Console> {
    Router::new()
        .route(PATH, get(settings))
        .route("/console/settings/tokens", post(create))
        .route("/console/settings/tokens/{id}/revoke", get(confirm).post(revoke))
}

#[derive(askama::Template)]
#[template(path = "settings.html")]
struct Page {
    shell: Shell,
    who: WhoAsks,
    tokens: Option<TokenList>,
    next: Option<String>,
    webhooks: Vec<WebhookView>,
    /// Shown once.
    created: Option<String>,
    /// The token that was revoked just now, and what was created with it.
    revoked: Option<(String, Vec<TokenDescendant>)>,
}

async fn settings(visit: Visit) -> Response {
    visit.answer(page(&visit).await)
}

async fn page(visit: &Visit) -> Result<Page, Failure> {
    let who = visit.shell.who.clone().ok_or_else(|| Failure::not_found("Nobody is signed in."))?;
    let filter = Filter::of(&visit.here);
    let tokens: Option<TokenList> = if who.may(UserRole::Admin) || who.may(UserRole::Tokens) {
        Some(visit.api.get(&format!("/v1/tokens{}", filter.request(&[("page_size", "50")]))).await?)
    } else {
        None
    };
    let next = tokens.as_ref().and_then(|list| filter.next(PATH, &list.next_page_token));
    let webhooks =
        if who.may(UserRole::Read) { visit.api.get::<WebhookList>("/v1/webhooks").await?.webhooks } else { Vec::new() };
    Ok(Page { shell: visit.frame("Settings"), who, tokens, next, webhooks, created: None, revoked: None })
}

#[derive(Deserialize)]
struct NewToken {
    #[serde(default)]
    user: String,
    #[serde(default)]
    label: String,
    #[serde(default)]
    days: String,
    forever: Option<String>,
    submit: Option<String>,
    inline: Option<String>,
    read: Option<String>,
    operate: Option<String>,
    admin: Option<String>,
    tokens: Option<String>,
    #[serde(default)]
    own: String,
}

async fn create(visit: Visit, Form(new): Form<NewToken>) -> Response {
    match created(&visit, &new).await {
        // The secret stands in the answer itself and never in an address.
        Ok(token) => visit.answer(page(&visit).await.map(|page| Page { created: Some(token), ..page })),
        Err(failure) => visit.done(Err(failure)),
    }
}

async fn created(visit: &Visit, new: &NewToken) -> Result<String, Failure> {
    let given = [
        ("submit", &new.submit),
        ("inline", &new.inline),
        ("read", &new.read),
        ("operate", &new.operate),
        ("admin", &new.admin),
        ("tokens", &new.tokens),
    ];
    let roles: Vec<&str> = given.iter().filter(|(_, given)| given.is_some()).map(|(role, _)| *role).collect();
    let mut body = json!({ "roles": roles });
    if !new.user.trim().is_empty() {
        body["user"] = new.user.trim().into();
    }
    if !new.label.trim().is_empty() {
        body["label"] = new.label.trim().into();
    }
    let days = new.days.trim();
    if new.forever.is_some() {
        body["expiry"] = json!(TokenExpiry::Never);
    } else if !days.is_empty() {
        let wrong = || {
            let days = show::clip(days, 40);
            Failure::invalid(format!("days is {days:?}; allowed: a whole number of days from 1 to 3650"))
        };
        let days = days.parse::<u64>().ok().filter(|days| (1..=3_650).contains(days)).ok_or_else(wrong)?;
        body["expiry"] = json!(TokenExpiry::AfterSeconds(days.saturating_mul(86_400)));
    }
    let created = once_more(visit, &new.own).post::<CreatedToken>("/v1/tokens", &body).await.map_err(of_own_token)?;
    Ok(created.token)
}

/// Returns the API with the visitor's own token: a session creates and revokes none.
fn once_more(visit: &Visit, own: &str) -> Api {
    visit.api.with_token(Some(own).filter(|_| has_session(visit)))
}

fn has_session(visit: &Visit) -> bool {
    visit.shell.who.as_ref().is_some_and(|who| who.by == By::Session)
}

/// Keeps a token that was typed wrong from ending the session.
fn of_own_token(failure: Failure) -> Failure {
    if failure.is_unauthenticated() {
        return Failure::invalid("Your own token is needed once more, and this one is unknown, expired or revoked.");
    }
    failure
}

#[derive(askama::Template)]
#[template(path = "revoke.html")]
struct RevokePage {
    shell: Shell,
    id: String,
    has_session: bool,
}

async fn confirm(visit: Visit, Path(id): Path<String>) -> Response {
    let has_session = has_session(&visit);
    visit.answer(Ok(RevokePage { shell: visit.frame("Revoke a token"), id, has_session }))
}

#[derive(Deserialize)]
struct Revoke {
    #[serde(default)]
    own: String,
    /// Leave what was created with it.
    keep: Option<String>,
}

async fn revoke(visit: Visit, Path(id): Path<String>, Form(how): Form<Revoke>) -> Response {
    let keep = how.keep.is_some();
    let path = format!("/v1/tokens/{}?keep_descendants={keep}", show::url(&id));
    let revoked = match once_more(&visit, &how.own).delete::<TokenRevokeReply>(&path).await {
        Ok(reply) => (id, reply.descendants),
        Err(failure) => return visit.done(Err(of_own_token(failure))),
    };
    visit.answer(page(&visit).await.map(|page| Page { revoked: Some(revoked), ..page }))
}

impl Page {
    fn by(&self) -> &'static str {
        match self.who.by {
            By::Session => "signed in with a token",
            By::Token => "with a token",
            By::Loopback | By::Other => "without a token, because this gateway serves this machine only",
        }
    }

    fn has_session(&self) -> bool {
        self.who.by == By::Session
    }
}
