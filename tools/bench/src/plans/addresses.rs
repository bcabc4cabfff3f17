//! What is asked of a gateway: each list and each filter alone, in pairs, with values that are common, rare, and of nothing; and the pages
//! of the console.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

use super::fill::Filled;

/// An address, and who asks for it.
pub(super) struct Address {
    pub(super) tenant: &'static str,
    pub(super) path: String,
    /// It searches: the answer may come later, and has what was found until then.
    pub(super) searches: bool,
}

/// What a page lets a search take, in ms.
const LOOK_MS: u32 = 250;

/// Six in ten calls; one in eight; one in a thousand.
pub(super) const TENANTS: [&str; 3] = ["default", "tenant_1", "tenant_small"];

const CALLS: [&str; 44] = [
    "",
    "page_size=1000",
    "tool=tool_7",
    "tool=tool_rare",
    "tool=no_such",
    "not_tool=tool_7",
    "model=small",
    "not_model=small",
    "state=failed",
    "state=unknown",
    "state=refused",
    "state=ready",
    "state=running",
    "state=succeeded",
    "not_state=succeeded",
    "class=unavailable",
    "class=auth",
    "class=unknown_tool",
    "not_class=unavailable&state=failed",
    "agent=agent_3",
    "agent=agent_rare",
    "agent=no_such",
    "not_agent=agent_3",
    "effect=unsafe",
    "not_effect=read",
    "submitted_by=user_7",
    "submitted_by=nobody",
    "tool=tool_7&class=timeout",
    "tool=tool_7&class=auth",
    "tool=tool_rare&class=timeout",
    "tool=tool_7&state=failed",
    "tool=tool_7&state=cancelled",
    "tool=tool_7&not_class=timeout",
    "agent=agent_3&class=timeout",
    "agent=agent_rare&state=failed",
    "effect=unsafe&class=timeout",
    "submitted_by=user_7&state=failed",
    "class=timeout&not_tool=tool_7",
    "argument=/city=Paris",
    "argument=/city=Nowhere",
    "output=/booking=CA1234",
    "contains=nowhere",
    "tool=tool_rare&contains=nowhere",
    "class=timeout&argument=/city=Nowhere",
];

const TASKS: [&str; 22] = [
    "",
    "state=failed",
    "state=running",
    "state=waiting",
    "state=succeeded",
    "not_state=succeeded",
    "code=model_failed",
    "code=time_exhausted",
    "code=no_answer",
    "code=answered",
    "agent=agent_3",
    "agent=agent_rare",
    "agent=no_such",
    "not_agent=agent_3",
    "model=large",
    "model=none",
    "submitted_by=user_7",
    "submitted_by=nobody",
    "contains=town",
    "contains=nowhere",
    "agent=agent_3&state=failed",
    "agent=agent_3&contains=nowhere",
];

/// These ask a dispatcher, too.
const OF_A_DISPATCHER: [&str; 5] =
    ["/v1/tools", "/v1/agents", "/v1/tools/tool_7", "/console/tools", "/console/tools/tool_7"];

/// Pages that no filter narrows, for each tenant.
const PAGES: [&str; 16] = [
    "/console",
    "/console/tasks",
    "/console/calls",
    "/console/failed",
    "/console/unknown",
    "/console/models",
    "/console/models?days=1",
    "/console/models?days=30",
    "/console/models?days=90",
    "/console/workers",
    "/console/conversations",
    "/console/redrives",
    "/console/audit",
    "/console/rejected",
    "/console/settings",
    "/console/tasks?state=failed",
];

/// Pages that search.
const SEARCHES: [&str; 6] = [
    "tool=tool_7&class=timeout",
    "not_state=succeeded",
    "agent=agent_3&class=timeout",
    "submitted_by=user_7&state=failed",
    "argument=/city=Paris",
    "argument=/city=Nowhere",
];

const OTHERS: [&str; 11] = [
    "/v1/conversations",
    "/v1/actions",
    "/v1/redrives",
    "/v1/rejected",
    "/v1/workers",
    "/v1/statistics?by=tool",
    "/v1/statistics?by=class",
    "/v1/statistics?by=model",
    "/v1/statistics?by=worker",
    "/v1/statistics?by=hour",
    "/v1/queues",
];

pub(super) fn all(filled: &Filled) -> Vec<Address> {
    let (early, middle) = (filled.now - TimeDelta::hours(500), filled.calls / 2 / 10 * 10);
    let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let (early, soon) = (time(early), time(early + TimeDelta::hours(1)));
    let worker = format!("worker-{}-3", filled.calls / 2 / 50_000);
    let of_default = [
        format!("/v1/calls?worker={worker}&look_ms={LOOK_MS}"),
        format!("/v1/calls?worker={worker}&class=timeout&look_ms={LOOK_MS}"),
        format!("/v1/calls?not_worker={worker}&look_ms={LOOK_MS}"),
        format!("/v1/calls?since={early}&look_ms={LOOK_MS}"),
        format!("/v1/calls?until={early}&look_ms={LOOK_MS}"),
        format!("/v1/calls?tool=tool_7&until={early}&look_ms={LOOK_MS}"),
        format!("/v1/calls?since={early}&until={soon}&class=auth&look_ms={LOOK_MS}"),
        format!("/v1/calls?conversation=conversation {}&look_ms={LOOK_MS}", middle / 10),
        format!("/v1/calls?key=key {}&look_ms={LOOK_MS}", middle / 20 * 20 + 10),
        format!("/v1/calls?task={}&look_ms={LOOK_MS}", filled.task),
        format!("/v1/calls/{}", filled.call),
        format!("/v1/tasks?since={early}&until={soon}&look_ms={LOOK_MS}"),
        format!("/v1/tasks?conversation=conversation {}&look_ms={LOOK_MS}", middle / 50 * 5),
        format!("/v1/tasks/{}", filled.task),
        format!("/v1/tasks/{}/steps", filled.task),
        format!("/v1/tasks/{}/calls", filled.task),
    ];
    let mut all: Vec<Address> = of_default.into_iter().map(|path| address(TENANTS[0], path)).collect();
    for tenant in TENANTS {
        all.extend(CALLS.iter().map(|query| address(tenant, listed("/v1/calls", query))));
        all.extend(TASKS.iter().map(|query| address(tenant, listed("/v1/tasks", query))));
    }
    all.extend(OTHERS.iter().map(|path| address(TENANTS[0], (*path).to_owned())));
    for tenant in TENANTS {
        all.extend(PAGES.iter().map(|path| address(tenant, (*path).to_owned())));
        let search = |query: &&str| Address { searches: true, ..address(tenant, format!("/console/calls?{query}")) };
        all.extend(SEARCHES.iter().map(search));
    }
    let task = format!("/console/tasks/{}", filled.task);
    let parts = ["", "/corrections", "/conversation", "/replay"].map(|part| format!("{task}{part}"));
    all.extend(parts.map(|path| address(TENANTS[0], path)));
    let call = format!("/console/calls/{}", filled.call);
    let others = [call, format!("/console/conversations/conversation {}", middle / 50 * 5)];
    all.extend(others.map(|path| address(TENANTS[0], path)));
    all.push(address(TENANTS[2], "/v1/conversations".to_owned()));
    all
}

/// What can only be asked while a dispatcher runs.
pub(super) fn of_a_dispatcher() -> impl Iterator<Item = Address> {
    OF_A_DISPATCHER.iter().map(|path| address(TENANTS[0], (*path).to_owned()))
}

fn listed(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}&look_ms={LOOK_MS}") }
}

#[expect(clippy::needless_pass_by_value, reason = "each caller makes the text for it")]
fn address(tenant: &'static str, path: String) -> Address {
    Address { searches: path.contains("look_ms"), tenant, path: path.replace(' ', "%20") }
}
