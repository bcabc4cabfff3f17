//! `redial actions`: what users did.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use redial_proto::subjects::Verb;
use redial_store::{ActionFilter, ActionRecord};

use crate::{
    cli::ActionsArgs,
    connect, output,
    settings::Settings,
    table::{Cell, Column, Paper, Table},
};

const NARROW: [Column; 6] = [
    Column::whole("asked"),
    Column::whole("user"),
    Column::whole("action"),
    Column::whole("on"),
    Column::whole("result"),
    Column::shortened("target", 8),
];
const WIDE: [Column; 10] = [
    Column::whole("id"),
    Column::whole("asked"),
    Column::whole("tenant"),
    Column::whole("user"),
    Column::whole("role"),
    Column::whole("from"),
    Column::whole("action"),
    Column::whole("on"),
    Column::whole("result"),
    Column::whole("targets"),
];

pub(crate) async fn run(settings: &Settings, args: ActionsArgs) -> anyhow::Result<ExitCode> {
    let store = connect::store(settings).await?;
    let filter = ActionFilter {
        tenant: settings.only_tenant()?,
        user: args.by,
        verb: args.action,
        since: args.since,
        before: args.before,
    };
    let mut actions = store.actions(&filter, args.limit.saturating_add(1)).await?;
    let more = actions.len() > args.limit as usize;
    actions.truncate(args.limit as usize);
    if actions.is_empty() {
        output::note("no action on record matches");
    } else if settings.json() {
        actions.iter().try_for_each(output::json)?;
    } else {
        output::line(render(&actions, args.wide, Paper::of_stdout(args.wide), store.now().await?))?;
    }
    if let Some(last) = actions.last().filter(|_| more) {
        output::note(format!("there are older ones: --before {}", last.id));
    }
    Ok(ExitCode::SUCCESS)
}

fn render(actions: &[ActionRecord], wide: bool, paper: Paper, now: DateTime<Utc>) -> String {
    let rows: Vec<Vec<Cell>> = actions.iter().map(|action| row(action, wide, now)).collect();
    Table::new(paper, if wide { &WIDE } else { &NARROW }).part(&rows)
}

fn row(action: &ActionRecord, wide: bool, now: DateTime<Utc>) -> Vec<Cell> {
    let asked = if wide { output::time(action.at) } else { output::ago(action.at, now) };
    let is_erasure = [Verb::ConversationForget, Verb::TenantForget].iter().any(|verb| verb.name() == action.verb);
    let on = match action.changed {
        Some(changed) if is_erasure || changed == action.target_count => changed.to_string(),
        Some(changed) => format!("{changed} of {}", action.target_count),
        None => action.target_count.to_string(),
    };
    let result = action.result.clone().unwrap_or_else(|| "unknown".to_owned());
    let targets = action.targets.join(" ");
    if !wide {
        let (user, verb) = (action.user.clone(), action.verb.clone());
        return vec![asked.into(), user.into(), verb.into(), on.into(), result.into(), targets.into()];
    }
    let from = match &action.address {
        Some(address) => format!("{} {address}", action.door),
        None => action.door.clone(),
    };
    vec![
        action.id.to_string().into(),
        asked.into(),
        action.tenant.clone().into(),
        action.user.clone().into(),
        action.role.clone().into(),
        from.into(),
        action.verb.clone().into(),
        on.into(),
        result.into(),
        targets.into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_for_each_action() {
        let action = |id, verb: &str, targets: &[&str], result: Option<&str>, changed| ActionRecord {
            id,
            at: "2026-11-20T08:00:00Z".parse().unwrap(),
            tenant: "acme".to_owned(),
            user: "alice".to_owned(),
            role: "operate".to_owned(),
            door: "nats".to_owned(),
            address: None,
            verb: verb.to_owned(),
            targets: targets.iter().map(|&target| target.to_owned()).collect(),
            target_count: i32::try_from(targets.len()).unwrap(),
            result: result.map(str::to_owned),
            changed,
        };
        let call = "0190a1b2-0000-7000-8000-000000000001";
        let actions = [
            action(4, "conversations.forget", &["trip-9"], Some("done"), Some(17)),
            action(3, "calls.redrive", &[call, "0190a1b2-0000-7000-8000-000000000002"], Some("done"), Some(1)),
            action(2, "calls.cancel", &[call], None, None),
            action(1, "tools.forget", &["book_flight"], Some("wrong_state"), Some(0)),
        ];
        let now = "2026-11-20T08:05:00Z".parse().unwrap();
        insta::assert_snapshot!("narrow", render(&actions, false, Paper::test(Some(80)), now));
        insta::assert_snapshot!("wide", render(&actions, true, Paper::test(None), now));
    }
}
