//! `redial token`: by which programs come over HTTP.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use redial_api::{CreatedToken, TokenItem};
use redial_proto::{
    ApiToken, TokenCreate, TokenCreateReply, TokenDescendant, TokenId, TokenRevoke, TokenRevokeReply, subjects::Verb,
};
use redial_store::TokenFilter;
use serde::Serialize;

use crate::{
    cli::{TokenCommand, TokenCreateArgs, TokenListArgs},
    connect,
    list::{self, Field, Form},
    output,
    settings::Settings,
    table::{self, Cell},
};

const FIELDS: &[Field<TokenItem>] = &[
    Field::whole("token", |token, _| token.id.clone().into()),
    Field::whole("state", |token, _| table::state(token.state.as_str())),
    Field::wide("tenant", |token, _| tenant(token).into()),
    Field::whole("user", |token, form| {
        if form.wide { token.user.clone().into() } else { format!("{}.{}", tenant(token), token.user).into() }
    }),
    Field::shortened("roles", 8, |token, _| token.roles.join(" ").into()),
    Field::wide("created", |token, _| output::time(token.created_at).into()),
    Field::wide("by", |token, _| token.created_by.clone().into()),
    Field::wide("with", |token, _| token.parent.clone().unwrap_or_default().into()),
    Field::whole("expires", |token, form| time(token.expires_at, NEVER, form)),
    Field::wide("revoked", |token, form| time(token.revoked_at, "", form)),
    Field::wide("revoked by", |token, _| token.revoked_by.clone().unwrap_or_default().into()),
    Field::whole("last used", |token, form| time(token.last_used_at, NEVER, form)),
    Field::shortened("label", 8, |token, _| output::one_line(&token.label, LABEL).into()),
];
const NEVER: &str = "never";

pub(crate) async fn run(settings: &Settings, command: TokenCommand) -> anyhow::Result<ExitCode> {
    match command {
        TokenCommand::Create(args) => create(settings, args).await,
        TokenCommand::List(args) => list(settings, args).await,
        TokenCommand::Revoke { id, keep_descendants } => revoke(settings, TokenRevoke { id, keep_descendants }).await,
    }
}

#[derive(Serialize)]
struct Revoked<'a> {
    id: &'a TokenId,
    #[serde(flatten)]
    reply: &'a TokenRevokeReply,
}

async fn create(settings: &Settings, args: TokenCreateArgs) -> anyhow::Result<ExitCode> {
    let queue = connect::queue(settings).await?;
    let token = ApiToken::of_random(&rand::random());
    let (tenant, user) = args.owner.map(|owner| (owner.tenant, Some(owner.user))).unwrap_or_default();
    let TokenCreateArgs { roles, expires, label, .. } = args;
    let request =
        TokenCreate { id: token.id.clone(), sha256: token.hash(), tenant, user, roles, label, expiry: expires };
    let reply: TokenCreateReply = match connect::request(&queue, Verb::TokenCreate, &request).await {
        Ok(reply) => reply,
        Err(error) => {
            if error.is_retryable() {
                let id = &token.id;
                output::note(format!(
                    "it is not known whether the token was created; nobody has it: redial token revoke {id}"
                ));
            }
            return Err(connect::api(error));
        }
    };
    if settings.json() {
        output::json(&CreatedToken { token: token.text(), reply })?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(token.text())?;
    let expires =
        reply.expires_at.map_or_else(|| "does not expire".to_owned(), |at| format!("expires {}", output::time(at)));
    let roles = reply.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ");
    output::note(format!("stands for {}.{} with the roles {roles}; {expires}", reply.tenant, reply.user));
    output::note("keep it like a password: it is not shown again");
    Ok(ExitCode::SUCCESS)
}

async fn revoke(settings: &Settings, request: TokenRevoke) -> anyhow::Result<ExitCode> {
    let queue = connect::queue(settings).await?;
    let reply: TokenRevokeReply = connect::request(&queue, Verb::TokenRevoke, &request).await.map_err(connect::api)?;
    let id = &request.id;
    if settings.json() {
        output::json(&Revoked { id, reply: &reply })?;
        return Ok(ExitCode::SUCCESS);
    }
    if reply.changed {
        output::line(format!("token {id} is revoked; a gateway that knows it refuses it within 10 s"))?;
    } else {
        output::line(format!("token {id} was revoked already, {}", output::time(reply.revoked_at)))?;
    }
    for TokenDescendant { id, state } in &reply.descendants {
        output::line(format!("token {id}, which was created with it, is {state}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(settings: &Settings, args: TokenListArgs) -> anyhow::Result<ExitCode> {
    let store = connect::store(settings).await?;
    let filter = TokenFilter {
        tenant: settings.only_tenant()?,
        user: args.owner.map(|user| user.to_string()),
        only_valid: !args.all,
        before: args.before,
    };
    let (tokens, more) = list::first(store.tokens(&filter, args.limit.saturating_add(1)).await?, args.limit);
    if tokens.is_empty() {
        let all = if args.all { "" } else { "; --all lists revoked and expired ones, too" };
        output::note(format!("no token matches{all}"));
    } else {
        list::print(settings, &store, FIELDS, &tokens, args.wide).await?;
    }
    if let Some(last) = tokens.last().filter(|_| more) {
        output::note(format!("there are older ones: --before {}", last.id));
    }
    Ok(ExitCode::SUCCESS)
}

fn time(at: Option<DateTime<Utc>>, none: &str, form: &Form) -> Cell {
    at.map_or_else(|| none.to_owned(), |at| form.time(at)).into()
}

/// Bytes of a label that are shown, at least all that it can have.
const LABEL: usize = 400;

fn tenant(token: &TokenItem) -> &str {
    token.tenant.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use redial_proto::{TokenState, UserRole};

    use super::*;

    #[test]
    fn one_line_for_each_token() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let token = |id: &str, state, label: &str| TokenItem {
            id: id.to_owned(),
            state,
            tenant: Some("acme".to_owned()),
            user: "alice".to_owned(),
            roles: [UserRole::Submit, UserRole::Read].map(|role| role.to_string()).to_vec(),
            label: label.to_owned(),
            created_at: at("2026-11-20T08:00:00Z"),
            created_by: "default.ops".to_owned(),
            parent: (state == TokenState::Revoked).then(|| "c4e7x2ksh5qa".to_owned()),
            expires_at: (state != TokenState::Valid).then(|| at("2026-12-20T08:00:00Z")),
            revoked_at: (state == TokenState::Revoked).then(|| at("2026-11-23T08:00:00Z")),
            revoked_by: (state == TokenState::Revoked).then(|| "acme.bob".to_owned()),
            last_used_at: (state != TokenState::Expired).then(|| at("2026-11-24T07:55:00Z")),
        };
        let tokens = [
            token("c4e7x2ksh5qa", TokenState::Valid, "the nightly run of the team in Paris\u{1b}[2J"),
            token("d4e7x2ksh5qa", TokenState::Revoked, ""),
            token("e4e7x2ksh5qa", TokenState::Expired, "ci"),
        ];
        let now = at("2026-11-24T08:00:00Z");
        insta::assert_snapshot!(list::both(FIELDS, now, &tokens));
    }
}
