//! What nats-server has to know, as plain data.
//!
//! Every user and every worker identity has an account of its own, and imports from the dispatchers' account exactly what
//! it may use. One account for all with permissions would not do: nats-server answers to whatever reply subject a message
//! names, with its own rights, and so purges and deletes streams for anyone (`docs/SECURITY.md`). A reply subject means
//! something only in the account of who sent it.

use redial_proto::{
    UserRole,
    subjects::{ControlVerb, Intake, MAX_CONSUMERS, Verb, consumer_name},
};

use crate::{Access, Password, User, WorkerIdentity, names};

/// The account of the dispatchers, with all streams.
const MAIN: &str = "REDIAL";
/// The pool whose workers ask models.
const MODELS: &str = "models";
/// Pieces of a model's answer, for all tenants.
const DELTAS: &str = "redial.events.*.tasks.*.delta";

/// An account of nats-server with its only user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// `REDIAL`, `acme/alice`, `worker/tools`.
    pub name: String,
    /// Who that is, and what it may do.
    pub about: String,
    /// The user's name: `dispatcher`, `acme.alice`, `worker.tools`.
    pub user: String,
    /// Its password.
    pub password: Password,
    /// What it may publish to.
    pub publish: Vec<String>,
    /// What it may subscribe to.
    pub subscribe: Vec<String>,
    /// What other accounts may import.
    pub exports: Vec<Export>,
    /// What it may use of other accounts.
    pub imports: Vec<Import>,
    /// Whether it has the streams.
    pub jetstream: bool,
}

/// Which way messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To the account that exports, and a reply back.
    Service,
    /// The same with many replies.
    Replies,
    /// From the account that exports.
    Stream,
}

/// What others may import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Which way.
    pub kind: Kind,
    /// The subjects.
    pub subject: String,
}

/// What is used of another account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Which way; never [`Kind::Replies`].
    pub kind: Kind,
    /// The account that exports it.
    pub account: String,
    /// The subjects, in both accounts.
    pub subject: String,
}

/// The dispatchers' account first, then those of users and workers, in the order of their names.
pub(crate) fn accounts(access: &Access) -> Vec<Account> {
    let mut found = vec![dispatchers(access)];
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
        subscribe: ["redial.api.>", "redial.ctl.>", "redial.dispatchers.>", "_INBOX_dispatcher.>"]
            .map(str::to_owned)
            .to_vec(),
        exports: EXPORTS.map(|(kind, subject)| Export { kind, subject: subject.to_owned() }).to_vec(),
        imports: Vec::new(),
        jetstream: true,
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
    // Limits the age of jobs on a stream that an older version created.
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
const EXPORTS: [(Kind, &str); 11] = [
    (Kind::Service, "redial.api.>"),
    (Kind::Service, "redial.intake.>"),
    (Kind::Service, "redial.ctl.>"),
    (Kind::Service, "redial.results.>"),
    (Kind::Service, "$JS.API.INFO"),
    (Kind::Service, "$JS.API.CONSUMER.INFO.JOBS.*"),
    (Kind::Replies, "$JS.API.CONSUMER.MSG.NEXT.JOBS.*"),
    (Kind::Service, "$JS.ACK.JOBS.>"),
    (Kind::Service, "$JS.ACK.*.*.JOBS.>"),
    (Kind::Stream, "redial.events.>"),
    (Kind::Stream, "redial.worker.>"),
];

fn user_account(access: &Access, tenant: &str, name: &str, user: &User) -> Account {
    // Each subject by itself: dispatchers would store what a wildcard lets in, and their client does not survive each of them.
    let mut publish = Vec::new();
    for role in &user.roles {
        let may = |verb: &&Verb| verb.roles().contains(role);
        let verbs: Vec<Verb> = Verb::ALL.iter().filter(may).copied().collect();
        publish
            .extend(verbs.iter().map(|verb| format!("redial.api.{tenant}.{name}.{}.{}", role.as_str(), verb.name())));
        let put = |what: &&Intake| verbs.contains(&what.verb());
        let puts = Intake::ALL.iter().filter(put);
        publish.extend(puts.map(|what| format!("redial.intake.{tenant}.{name}.{}.{}", role.as_str(), what.name())));
    }
    let mut subscribe = vec![format!("_INBOX_client.{tenant}.{name}.>")];
    let mut imports: Vec<Import> = publish.iter().map(|subject| import(Kind::Service, MAIN, subject)).collect();
    if user.roles.contains(&UserRole::Read) {
        let events = format!("redial.events.{tenant}.>");
        imports.push(import(Kind::Stream, MAIN, &events));
        subscribe.push(events);
        let models = access.workers.iter().filter(|(_, worker)| worker.pools.contains(MODELS));
        let deltas = format!("redial.events.{tenant}.tasks.*.delta");
        imports.extend(models.map(|(worker, _)| import(Kind::Stream, &worker_name(worker), &deltas)));
    }
    let may: Vec<&str> = user.roles.iter().map(|role| allows(*role)).collect();
    Account {
        name: format!("{tenant}/{name}"),
        about: format!("User {name} of tenant {tenant}: may {}.", may.join("; ")),
        user: names::of_user(tenant, name),
        password: user.password.clone(),
        publish,
        subscribe,
        exports: Vec::new(),
        imports,
        jetstream: false,
    }
}

fn worker_account(name: &str, worker: &WorkerIdentity) -> Account {
    let pools: Vec<&str> = worker.pools.iter().map(String::as_str).collect();
    let verbs = ControlVerb::ALL.iter().map(|verb| format!("redial.ctl.{name}.{}.{}", pools.join("+"), verb.name()));
    let mut publish: Vec<String> = verbs.chain([format!("redial.results.{name}"), "$JS.API.INFO".to_owned()]).collect();
    for pool in &pools {
        for consumer in (1..=MAX_CONSUMERS).map(|n| consumer_name(pool, n)) {
            publish.push(format!("$JS.API.CONSUMER.INFO.JOBS.{consumer}"));
            publish.push(format!("$JS.API.CONSUMER.MSG.NEXT.JOBS.{consumer}"));
            publish.push(format!("$JS.ACK.JOBS.{consumer}.>"));
            publish.push(format!("$JS.ACK.*.*.JOBS.{consumer}.>"));
        }
    }
    let notices = format!("redial.worker.{name}.>");
    let mut imports: Vec<Import> = publish.iter().map(|subject| import(Kind::Service, MAIN, subject)).collect();
    imports.push(import(Kind::Stream, MAIN, &notices));
    let mut exports = Vec::new();
    if worker.pools.contains(MODELS) {
        publish.push(DELTAS.to_owned());
        exports.push(Export { kind: Kind::Stream, subject: DELTAS.to_owned() });
    }
    let plural = if pools.len() == 1 { "" } else { "s" };
    Account {
        name: worker_name(name),
        about: format!("Workers {name}: may run the calls of pool{plural} {}.", pools.join(", ")),
        user: names::of_worker(name),
        password: worker.password.clone(),
        publish,
        subscribe: vec![notices, format!("_INBOX_worker.{name}.>")],
        exports,
        imports,
        jetstream: false,
    }
}

/// What a role allows, as a sentence goes on after "may".
const fn allows(role: UserRole) -> &'static str {
    match role {
        UserRole::Submit => "submit and cancel calls and tasks",
        UserRole::Inline => "submit tasks with an agent of its own",
        UserRole::Read => "read calls and tasks and hear their events",
        UserRole::Operate => "redrive calls",
        UserRole::Admin => "accept and forget tools, forget conversations and the tenant",
    }
}

fn worker_name(identity: &str) -> String {
    format!("worker/{identity}")
}

fn import(kind: Kind, account: &str, subject: &str) -> Import {
    Import { kind, account: account.to_owned(), subject: subject.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<Account> {
        Access::read("access.toml", include_str!("example.toml")).unwrap().accounts()
    }

    #[test]
    fn an_account_imports_what_its_user_may_publish_and_nothing_else() {
        for account in example().iter().skip(1) {
            let services = account.imports.iter().filter(|import| import.kind == Kind::Service);
            let imported: Vec<&String> = services.map(|import| &import.subject).collect();
            let published: Vec<&String> = account.publish.iter().filter(|subject| *subject != DELTAS).collect();
            assert_eq!(imported, published, "{}", account.name);
        }
    }

    #[test]
    fn nobody_can_name_the_reserved_replies() {
        for account in example().iter().skip(1) {
            let all = account.publish.iter().chain(&account.subscribe);
            assert!(all.clone().all(|subject| !subject.starts_with("_R_")), "{}", account.name);
            assert!(all.clone().all(|subject| !subject.starts_with(['>', '*'])), "{}", account.name);
        }
    }

    #[test]
    fn names_are_distinct() {
        let names: std::collections::BTreeSet<String> =
            example().into_iter().flat_map(|account| [account.name, account.user]).collect();
        assert_eq!(names.len(), 10);
    }
}
