//! `redial actions`: what users did.

use std::process::ExitCode;

use redial_api::ActionItem;
use redial_proto::subjects::Verb;
use redial_store::ActionFilter;

use crate::{
    cli::ActionsArgs,
    connect,
    list::{self, Field},
    output,
    settings::Settings,
};

const FIELDS: &[Field<ActionItem>] = &[
    Field::wide("id", |action, _| action.id.to_string().into()),
    Field::whole("asked", |action, form| form.time(action.at).into()),
    Field::wide("tenant", |action, _| action.tenant.clone().unwrap_or_default().into()),
    Field::whole("user", |action, _| action.user.clone().into()),
    Field::wide("role", |action, _| action.role.clone().into()),
    Field::wide("from", |action, _| action.door.clone().into()),
    Field::wide("token", |action, _| action.token.clone().unwrap_or_default().into()),
    Field::whole("action", |action, _| action.verb.clone().into()),
    Field::whole("on", |action, _| on(action).into()),
    Field::whole("result", |action, _| action.result.as_deref().unwrap_or("unknown").into()),
    Field::narrow("target", 8, |action, _| action.targets.join(" ").into()),
    Field::wide("targets", |action, _| action.targets.join(" ").into()),
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
    let (actions, more) = list::first(store.actions(&filter, args.limit.saturating_add(1)).await?, args.limit);
    if actions.is_empty() {
        output::note("no action on record matches");
    } else {
        list::print(settings, &store, FIELDS, &actions, args.wide).await?;
    }
    if let Some(last) = actions.last().filter(|_| more) {
        output::note(format!("there are older ones: --before {}", last.id));
    }
    Ok(ExitCode::SUCCESS)
}

/// Says on how many it was done.
fn on(action: &ActionItem) -> String {
    let is_erasure = [Verb::ConversationForget, Verb::TenantForget].iter().any(|verb| verb.name() == action.verb);
    match action.changed {
        Some(changed) if is_erasure || changed == action.target_count => changed.to_string(),
        Some(changed) => format!("{changed} of {}", action.target_count),
        None => action.target_count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_for_each_action() {
        let action = |id, verb: &str, targets: &[&str], result: Option<&str>, changed| ActionItem {
            id,
            at: "2026-11-20T08:00:00Z".parse().unwrap(),
            tenant: Some("acme".to_owned()),
            user: "alice".to_owned(),
            role: "operate".to_owned(),
            door: if id == 4 { "http" } else { "nats" }.to_owned(),
            token: (id == 4).then(|| "c4e7x2ksh5qa".to_owned()),
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
        insta::assert_snapshot!(list::both(FIELDS, now, &actions));
    }
}
