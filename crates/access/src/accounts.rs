//! What nats-server has to know, as plain data.
//!
//! Every user and every worker identity has an account of its own, and imports from the dispatchers' account exactly what
//! it may use. One account for all with permissions would not do: nats-server answers to whatever reply subject a message
//! names, with its own rights, and so purges and deletes streams for anyone (`docs/SECURITY.md`). A reply subject means
//! something only in the account of who sent it.

use redial_proto::{
    Door, Tenant, User, UserRole, WorkerIdentity,
    subjects::{self, ControlVerb, DISPATCHER_INBOX, GATEWAY_INBOX, Intake, MAX_CONSUMERS, Verb, consumer_name},
};

use crate::{Access, Password, ServiceLogin, UserEntry, WorkerEntry, names};

/// The account of the dispatchers, with all streams.
const MAIN: &str = "REDIAL";
const GATEWAY: &str = "gateway";
/// Events of all tenants.
const EVENTS: &str = "redial.events.>";
/// The pool whose workers ask models.
const MODELS: &str = "models";
/// Pieces of a model's answer, for all tenants.
const DELTAS: &str = "redial.events.*.tasks.*.delta";

/// An account of nats-server with its only user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// `REDIAL`, `gateway`, `acme/alice`, `worker/tools`.
    pub name: String,
    /// Who that is, and what it may do.
    pub about: String,
    /// The user's name: `dispatcher`, `gateway`, `acme.alice`, `worker.tools`.
    pub user: String,
    pub password: Password,
    /// Below which it receives replies.
    pub inbox_prefix: String,
    pub publish: Vec<String>,
    pub subscribe: Vec<String>,
    pub exports: Vec<Export>,
    /// What it may use of other accounts.
    pub imports: Vec<Import>,
    /// `None`: the account with the streams, which has none.
    pub limits: Option<Limits>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Each may keep 64 MiB of the server's memory by not reading.
    pub connections: u32,
    /// Of each connection.
    pub subscriptions: u32,
}

/// Of the gateways, which subscribe to the text of each task that somebody reads live, and of a worker identity.
const OWN: Limits = Limits { connections: 1_000, subscriptions: 20_000 };
/// Subscriptions of a connection of a user: its inbox, and the events that it waits for.
const USER_SUBSCRIPTIONS: u32 = 500;

/// Which way messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the account that exports, and a reply back.
    Service,
    /// The same with many replies.
    Replies,
    /// From the account that exports.
    Stream,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    pub direction: Direction,
    pub subject: String,
}

/// What is used of another account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Never [`Direction::Replies`].
    pub direction: Direction,
    pub account: String,
    /// In both accounts.
    pub subject: String,
}

/// Returns the dispatchers' account first, then that of the gateways, then those of users and workers by name.
pub(crate) fn accounts(access: &Access) -> Vec<Account> {
    let mut found = vec![dispatchers(access)];
    found.extend(access.gateway.as_ref().map(|login| gateways(access, login)));
    for (name, tenant) in &access.tenants {
        found.extend(tenant.users.iter().map(|(user, of)| user_account(access, name, user, of)));
    }
    found.extend(access.workers.iter().map(|(name, worker)| worker_account(name, worker)));
    found
}

fn dispatchers(access: &Access) -> Account {
    Account {
        name: MAIN.to_owned(),
        about: "Dispatchers: answer users and workers, publish jobs, read reports and submissions, own the streams."
            .to_owned(),
        user: access.dispatcher.user.clone(),
        password: access.dispatcher.password.clone(),
        publish: DISPATCHER_PUBLISH.map(str::to_owned).to_vec(),
        inbox_prefix: DISPATCHER_INBOX.to_owned(),
        subscribe: vec![
            "redial.api.>".to_owned(),
            "redial.gateway.>".to_owned(),
            "redial.ctl.>".to_owned(),
            "redial.dispatchers.>".to_owned(),
            format!("{DISPATCHER_INBOX}.>"),
        ],
        exports: EXPORTS.map(|(direction, subject)| Export { direction, subject: subject.to_owned() }).to_vec(),
        imports: Vec::new(),
        limits: None,
    }
}

const DISPATCHER_PUBLISH: [&str; 32] = [
    "redial.jobs.>",
    "redial.worker.>",
    "redial.events.>",
    "redial.dispatchers.>",
    // Answers to requests of other accounts. nats-server makes these subjects; nobody can name one as a reply.
    "_R_.>",
    // Creates missing streams and consumers and reads them back. A consumer that is ahead of its stream (which lost messages
    // with its disk) is deleted and created again. No stream is ever deleted.
    "$JS.API.INFO",
    "$JS.API.STREAM.CREATE.JOBS",
    "$JS.API.STREAM.CREATE.RESULTS",
    "$JS.API.STREAM.CREATE.INTAKE",
    // Gives streams their replicas.
    "$JS.API.STREAM.UPDATE.JOBS",
    "$JS.API.STREAM.UPDATE.RESULTS",
    "$JS.API.STREAM.UPDATE.INTAKE",
    "$JS.API.STREAM.INFO.JOBS",
    "$JS.API.STREAM.INFO.RESULTS",
    "$JS.API.STREAM.INFO.INTAKE",
    "$JS.API.CONSUMER.DURABLE.CREATE.JOBS.*",
    "$JS.API.CONSUMER.DURABLE.CREATE.RESULTS.dispatchers",
    "$JS.API.CONSUMER.DURABLE.CREATE.INTAKE.dispatchers",
    "$JS.API.CONSUMER.DELETE.JOBS.*",
    "$JS.API.CONSUMER.DELETE.RESULTS.dispatchers",
    "$JS.API.CONSUMER.DELETE.INTAKE.dispatchers",
    "$JS.API.CONSUMER.INFO.JOBS.*",
    "$JS.API.CONSUMER.INFO.RESULTS.dispatchers",
    "$JS.API.CONSUMER.INFO.INTAKE.dispatchers",
    // Looks for messages with headers that its client does not survive.
    "$JS.API.STREAM.MSG.GET.RESULTS",
    "$JS.API.STREAM.MSG.GET.INTAKE",
    // Reads reports and submissions. Newer servers have a second form of the acknowledgement.
    "$JS.API.CONSUMER.MSG.NEXT.RESULTS.dispatchers",
    "$JS.API.CONSUMER.MSG.NEXT.INTAKE.dispatchers",
    "$JS.ACK.RESULTS.dispatchers.>",
    "$JS.ACK.INTAKE.dispatchers.>",
    "$JS.ACK.*.*.RESULTS.dispatchers.>",
    "$JS.ACK.*.*.INTAKE.dispatchers.>",
];

/// What the other accounts import parts of.
const EXPORTS: [(Direction, &str); 12] = [
    (Direction::Service, "redial.api.>"),
    (Direction::Service, "redial.gateway.>"),
    (Direction::Service, "redial.intake.>"),
    (Direction::Service, "redial.ctl.>"),
    (Direction::Service, "redial.results.>"),
    (Direction::Service, "$JS.API.INFO"),
    (Direction::Service, "$JS.API.CONSUMER.INFO.JOBS.*"),
    (Direction::Replies, "$JS.API.CONSUMER.MSG.NEXT.JOBS.*"),
    (Direction::Service, "$JS.ACK.JOBS.>"),
    (Direction::Service, "$JS.ACK.*.*.JOBS.>"),
    (Direction::Stream, EVENTS),
    (Direction::Stream, "redial.worker.>"),
];

/// Lets a gateway ask for the users of all tenants, as their tokens say, and pass on the events of all.
fn gateways(access: &Access, login: &ServiceLogin) -> Account {
    let publish: Vec<String> = Verb::ALL.iter().map(|verb| subjects::api_of_all(Door::Http, *verb)).collect();
    let mut imports: Vec<Import> = publish.iter().map(|subject| import(Direction::Service, MAIN, subject)).collect();
    imports.push(import(Direction::Stream, MAIN, EVENTS));
    imports.extend(deltas(access, DELTAS));
    Account {
        name: GATEWAY.to_owned(),
        about: "Gateways: ask dispatchers for the users of all tenants, and hear the events of all.".to_owned(),
        user: login.user.clone(),
        password: login.password.clone(),
        inbox_prefix: GATEWAY_INBOX.to_owned(),
        publish,
        subscribe: vec![format!("{GATEWAY_INBOX}.>"), EVENTS.to_owned()],
        exports: Vec::new(),
        imports,
        limits: Some(OWN),
    }
}

/// Imports the pieces of models' answers from each identity that may ask models.
fn deltas(access: &Access, subject: &str) -> Vec<Import> {
    let models = access.workers.iter().filter(|(_, worker)| worker.pools.contains(MODELS));
    models.map(|(worker, _)| import(Direction::Stream, &names::account_of_worker(worker), subject)).collect()
}

fn user_account(access: &Access, tenant: &Tenant, name: &User, user: &UserEntry) -> Account {
    // Each subject by itself: dispatchers would store what a wildcard lets in, and their client does not survive each of them.
    let mut publish = Vec::new();
    for role in &user.roles {
        let may = |verb: &&Verb| verb.roles().contains(role);
        let verbs: Vec<Verb> = Verb::ALL.iter().filter(may).copied().collect();
        publish.extend(verbs.iter().map(|verb| subjects::api(Door::Nats, tenant, name, *role, *verb)));
        let put = |what: &&Intake| verbs.contains(&what.verb());
        let puts = Intake::ALL.iter().filter(put);
        publish.extend(puts.map(|what| subjects::intake(tenant, name, *role, *what)));
    }
    let inbox_prefix = subjects::user_inbox(tenant, name);
    let mut subscribe = vec![format!("{inbox_prefix}.>")];
    let mut imports: Vec<Import> = publish.iter().map(|subject| import(Direction::Service, MAIN, subject)).collect();
    if user.roles.contains(&UserRole::Read) {
        let events = format!("redial.events.{tenant}.>");
        imports.push(import(Direction::Stream, MAIN, &events));
        subscribe.push(events);
        imports.extend(deltas(access, &format!("redial.events.{tenant}.tasks.*.delta")));
    }
    let may: Vec<&str> = user.roles.iter().map(|role| allows(*role)).collect();
    Account {
        name: names::account_of_user(tenant, name),
        about: format!("User {name} of tenant {tenant}: may {}.", may.join("; ")),
        user: names::of_user(tenant, name),
        password: user.password.clone(),
        inbox_prefix,
        publish,
        subscribe,
        exports: Vec::new(),
        imports,
        limits: Some(Limits { connections: user.connections, subscriptions: USER_SUBSCRIPTIONS }),
    }
}

fn worker_account(identity: &WorkerIdentity, worker: &WorkerEntry) -> Account {
    let pools: Vec<&str> = worker.pools.iter().map(String::as_str).collect();
    let verbs = ControlVerb::ALL.iter().map(|verb| subjects::control(identity, &worker.pools_token, *verb));
    let mut publish: Vec<String> = verbs.chain([subjects::results(identity), "$JS.API.INFO".to_owned()]).collect();
    for pool in &pools {
        for consumer in (1..=MAX_CONSUMERS).map(|n| consumer_name(pool, n)) {
            publish.push(format!("$JS.API.CONSUMER.INFO.JOBS.{consumer}"));
            publish.push(format!("$JS.API.CONSUMER.MSG.NEXT.JOBS.{consumer}"));
            publish.push(format!("$JS.ACK.JOBS.{consumer}.>"));
            publish.push(format!("$JS.ACK.*.*.JOBS.{consumer}.>"));
        }
    }
    let (notices, inbox_prefix) = (format!("redial.worker.{identity}.>"), subjects::worker_inbox(identity));
    let mut imports: Vec<Import> = publish.iter().map(|subject| import(Direction::Service, MAIN, subject)).collect();
    imports.push(import(Direction::Stream, MAIN, &notices));
    let mut exports = Vec::new();
    if worker.pools.contains(MODELS) {
        publish.push(DELTAS.to_owned());
        exports.push(Export { direction: Direction::Stream, subject: DELTAS.to_owned() });
    }
    let plural = if pools.len() == 1 { "" } else { "s" };
    Account {
        name: names::account_of_worker(identity),
        about: format!("Workers {identity}: may run the calls of pool{plural} {}.", pools.join(", ")),
        user: names::of_worker(identity),
        password: worker.password.clone(),
        publish,
        subscribe: vec![notices, format!("{inbox_prefix}.>")],
        inbox_prefix,
        exports,
        imports,
        limits: Some(OWN),
    }
}

/// Returns what a role allows, as a sentence goes on after "may".
const fn allows(role: UserRole) -> &'static str {
    match role {
        UserRole::Submit => "submit and cancel calls and tasks",
        UserRole::Inline => "submit tasks with an agent of its own",
        UserRole::Read => "read calls and tasks and hear their events",
        UserRole::Operate => "redrive calls",
        UserRole::Admin => "create and revoke tokens, accept and forget tools, forget conversations and the tenant",
        UserRole::Tokens => "create and revoke tokens, also such that may do more than the token that asks",
    }
}

fn import(direction: Direction, account: &str, subject: &str) -> Import {
    Import { direction, account: account.to_owned(), subject: subject.to_owned() }
}
