//! `redial token`: by which programs come over HTTP.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use redial_proto::{ApiToken, TokenCreate, TokenCreateReply, TokenId, TokenRevoke, TokenRevokeReply, subjects::Verb};
use redial_store::{TokenFilter, TokenLine};
use serde::Serialize;

use crate::{
    cli::{TokenCommand, TokenCreateArgs, TokenListArgs},
    connect, output,
    settings::Settings,
    table::{self, Cell, Column, Paper, Table},
};

const NARROW: [Column; 7] = [
    Column::whole("token"),
    Column::whole("state"),
    Column::whole("user"),
    Column::shortened("roles", 8),
    Column::whole("expires"),
    Column::whole("last used"),
    Column::shortened("label", 8),
];
const WIDE: [Column; 12] = [
    Column::whole("token"),
    Column::whole("state"),
    Column::whole("tenant"),
    Column::whole("user"),
    Column::whole("roles"),
    Column::whole("created"),
    Column::whole("by"),
    Column::whole("expires"),
    Column::whole("revoked"),
    Column::whole("revoked by"),
    Column::whole("last used"),
    Column::whole("label"),
];
const NEVER: &str = "never";

pub(crate) async fn run(settings: &Settings, command: TokenCommand) -> anyhow::Result<ExitCode> {
    match command {
        TokenCommand::Create(args) => create(settings, args).await,
        TokenCommand::List(args) => list(settings, args).await,
        TokenCommand::Revoke { id } => revoke(settings, id).await,
    }
}

/// What `--json` prints of a new token.
#[derive(Serialize)]
struct Created<'a> {
    /// The whole token.
    token: &'a str,
    #[serde(flatten)]
    reply: &'a TokenCreateReply,
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
        output::json(&Created { token: &token.text(), reply: &reply })?;
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

async fn revoke(settings: &Settings, id: TokenId) -> anyhow::Result<ExitCode> {
    let queue = connect::queue(settings).await?;
    let request = TokenRevoke { id };
    let reply: TokenRevokeReply = connect::request(&queue, Verb::TokenRevoke, &request).await.map_err(connect::api)?;
    let id = &request.id;
    if settings.json() {
        output::json(&serde_json::json!({ "id": id, "revoked_at": reply.revoked_at, "changed": reply.changed }))?;
    } else if reply.changed {
        output::line(format!("token {id} is revoked; a gateway that knows it refuses it within 10 s"))?;
    } else {
        output::line(format!("token {id} was revoked already, {}", output::time(reply.revoked_at)))?;
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
    let mut tokens = store.tokens(&filter, args.limit.saturating_add(1)).await?;
    let more = tokens.len() > args.limit as usize;
    tokens.truncate(args.limit as usize);
    if tokens.is_empty() {
        let all = if args.all { "" } else { "; --all lists revoked and expired ones, too" };
        output::note(format!("no token matches{all}"));
    } else if settings.json() {
        tokens.iter().try_for_each(output::json)?;
    } else {
        output::line(render(&tokens, args.wide, Paper::of_stdout(args.wide), store.now().await?))?;
    }
    if let Some(last) = tokens.last().filter(|_| more) {
        output::note(format!("there are older ones: --before {}", last.id));
    }
    Ok(ExitCode::SUCCESS)
}

fn render(tokens: &[TokenLine], wide: bool, paper: Paper, now: DateTime<Utc>) -> String {
    let row = |token: &TokenLine| if wide { wide_row(token) } else { narrow_row(token, now) };
    let rows: Vec<Vec<Cell>> = tokens.iter().map(row).collect();
    Table::new(paper, if wide { &WIDE } else { &NARROW }).part(&rows)
}

fn narrow_row(token: &TokenLine, now: DateTime<Utc>) -> Vec<Cell> {
    let ago = |at: Option<DateTime<Utc>>| at.map_or_else(|| NEVER.to_owned(), |at| output::ago(at, now));
    vec![
        token.id.clone().into(),
        table::state(state(token)),
        format!("{}.{}", token.tenant, token.user).into(),
        token.roles.join(" ").into(),
        ago(token.expires_at).into(),
        ago(token.last_used_at).into(),
        output::one_line(&token.label, LABEL).into(),
    ]
}

fn wide_row(token: &TokenLine) -> Vec<Cell> {
    let time = |at: Option<DateTime<Utc>>, none: &str| at.map_or_else(|| none.to_owned(), output::time);
    vec![
        token.id.clone().into(),
        table::state(state(token)),
        token.tenant.clone().into(),
        token.user.clone().into(),
        token.roles.join(" ").into(),
        output::time(token.created_at).into(),
        token.created_by.clone().into(),
        time(token.expires_at, NEVER).into(),
        time(token.revoked_at, "").into(),
        token.revoked_by.clone().unwrap_or_default().into(),
        time(token.last_used_at, NEVER).into(),
        output::one_line(&token.label, LABEL).into(),
    ]
}

/// Bytes of a label that are shown, at least all that it can have.
const LABEL: usize = 400;

fn state(token: &TokenLine) -> &'static str {
    match token.state.as_str() {
        "valid" => "valid",
        "expired" => "expired",
        _ => "revoked",
    }
}

#[cfg(test)]
mod tests {
    use redial_proto::UserRole;

    use super::*;

    #[test]
    fn one_line_for_each_token() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let token = |id: &str, state: &str, label: &str| TokenLine {
            id: id.to_owned(),
            state: state.to_owned(),
            tenant: "acme".to_owned(),
            user: "alice".to_owned(),
            roles: [UserRole::Submit, UserRole::Read].map(|role| role.to_string()).to_vec(),
            label: label.to_owned(),
            created_at: at("2026-11-20T08:00:00Z"),
            created_by: "default.ops".to_owned(),
            expires_at: (state != "valid").then(|| at("2026-12-20T08:00:00Z")),
            revoked_at: (state == "revoked").then(|| at("2026-11-23T08:00:00Z")),
            revoked_by: (state == "revoked").then(|| "acme.bob".to_owned()),
            last_used_at: (state != "expired").then(|| at("2026-11-24T07:55:00Z")),
        };
        let tokens = [
            token("c4e7x2ksh5qa", "valid", "the nightly run of the team in Paris\u{1b}[2J"),
            token("d4e7x2ksh5qa", "revoked", ""),
            token("e4e7x2ksh5qa", "expired", "ci"),
        ];
        let now = at("2026-11-24T08:00:00Z");
        insta::assert_snapshot!("narrow", render(&tokens, false, Paper::test(Some(80)), now));
        insta::assert_snapshot!("wide", render(&tokens, true, Paper::test(None), now));
    }
}
