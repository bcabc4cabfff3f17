//! Names on NATS: subjects, streams, headers. `docs/PROTOCOL.md` says who may use which.

mod verbs;

use std::{collections::BTreeSet, time::Duration};

use strum::VariantArray;

pub use self::verbs::{ControlVerb, Verb};
use crate::{
    ANY_POOL, CallId, Caller, Door, TaskId, Tenant, User, UserRole, WorkerCaller, WorkerId, WorkerIdentity,
    tool::check_name,
};

/// Where users send their requests, and where gateways send those of users. They are apart, so that dispatchers can receive them on
/// connections of their own: whoever may send to one can end it.
const fn requests(door: Door) -> &'static str {
    match door {
        Door::Nats => "redial.api.",
        Door::Http => "redial.gateway.",
    }
}

/// The request of a user in one of its roles, by a way in.
pub fn api(door: Door, tenant: &Tenant, user: &User, role: UserRole, verb: Verb) -> String {
    format!("{}{tenant}.{user}.{}.{}", requests(door), role.as_str(), verb.name())
}

/// The requests of all users by a way in.
pub fn api_of_all(door: Door, verb: Verb) -> String {
    format!("{}*.*.*.{}", requests(door), verb.name())
}

/// Who sent a request of a user, or a message of the intake stream. `None` if the subject is not one of these.
pub fn caller(subject: &str) -> Option<Caller> {
    let below = |door| Some((door, subject.strip_prefix(requests(door))?));
    let intake = || Some((Door::Nats, subject.strip_prefix("redial.intake.")?));
    let (door, rest) = below(Door::Nats).or_else(|| below(Door::Http)).or_else(intake)?;
    let mut tokens = rest.splitn(4, '.');
    Some(Caller {
        tenant: tokens.next()?.parse().ok()?,
        user: tokens.next()?.parse().ok()?,
        role: tokens.next()?.parse().ok()?,
        door,
        token: None,
    })
}

/// Where the sender of a request puts and gets the pieces of its bodies. `None` if the subject is not one of a request.
pub fn pieces_beside(request: &str) -> Option<String> {
    let of_user = caller(request).is_some();
    let tokens = if of_user { 5 } else { 4 };
    let is_request = of_user || worker_caller(request).is_some();
    let prefix = request.match_indices('.').nth(tokens - 1).map(|(end, _)| &request[..end])?;
    is_request.then(|| format!("{prefix}.{}", ControlVerb::Piece.name()))
}

/// The request of a worker.
pub fn control(identity: &WorkerIdentity, pools: &str, verb: ControlVerb) -> String {
    format!("redial.ctl.{identity}.{pools}.{}", verb.name())
}

/// The requests of all workers.
pub fn control_of_all(verb: ControlVerb) -> String {
    format!("redial.ctl.*.*.{}", verb.name())
}

/// Which worker sent a request. `None` if the subject is not one of these.
pub fn worker_caller(subject: &str) -> Option<WorkerCaller> {
    let mut tokens = subject.strip_prefix("redial.ctl.")?.splitn(3, '.');
    let identity = tokens.next()?.parse().ok()?;
    Some(WorkerCaller::new(identity, tokens.next()?))
}

/// The pools of a worker's credentials as one token of its subjects. An error if they are too many for one.
pub fn pools_token<'a>(pools: impl IntoIterator<Item = &'a str>) -> Result<String, String> {
    let pools: BTreeSet<&str> = pools.into_iter().collect();
    if pools.is_empty() {
        return Ok(ANY_POOL.to_owned());
    }
    pools.iter().try_for_each(|pool| check_name("pool", pool))?;
    let token = pools.into_iter().collect::<Vec<_>>().join("+");
    if token.len() > MAX_POOLS_TOKEN {
        return Err(format!("the names of the pools take {} bytes together; allowed: {MAX_POOLS_TOKEN}", token.len()));
    }
    Ok(token)
}

/// The most bytes of [`pools_token`]: a line of the protocol of NATS holds 4,096.
const MAX_POOLS_TOKEN: usize = 2_000;

/// What [`INTAKE_STREAM`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, VariantArray)]
pub enum Intake {
    /// The bodies of [`Verb::CallSubmit`].
    Calls,
    /// The bodies of [`Verb::TaskSubmit`].
    Tasks,
}

impl Intake {
    /// Both.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its name, the last token of its subject.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Tasks => "tasks",
        }
    }

    /// What asks for the same and has a reply.
    pub const fn verb(self) -> Verb {
        match self {
            Self::Calls => Verb::CallSubmit,
            Self::Tasks => Verb::TaskSubmit,
        }
    }
}

/// Publication into the intake stream, without a reply.
pub fn intake(tenant: &Tenant, user: &User, role: UserRole, what: Intake) -> String {
    format!("redial.intake.{tenant}.{user}.{}.{}", role.as_str(), what.name())
}

/// Who sent a message of the intake stream, and what it holds. `None` if the subject is not one of these.
pub fn intake_caller(subject: &str) -> Option<(Caller, Intake)> {
    let name = subject.rsplit_once('.')?.1;
    let what = *Intake::ALL.iter().find(|what| what.name() == name)?;
    let caller = caller(subject).filter(|_| subject.split('.').count() == 6)?;
    Some((caller, what))
}

/// All subjects of the intake stream.
pub const INTAKE: &str = "redial.intake.>";

/// Publication: "a worker registered, or a tool was forgotten: look again"; no body.
pub const TOOLS_CHANGED: &str = "redial.dispatchers.tools_changed";

/// All subjects of the result stream.
pub const RESULTS: &str = "redial.results.>";

/// Publication into the result stream: a [`crate::ReportBatch`].
pub fn results(identity: &WorkerIdentity) -> String {
    format!("redial.results.{identity}")
}

/// Which worker identity sent a message of the result stream.
pub fn results_identity(subject: &str) -> Option<WorkerIdentity> {
    subject.strip_prefix("redial.results.")?.parse().ok()
}

/// Below which a user's request names the subject of its reply.
pub fn user_inbox(tenant: &Tenant, user: &User) -> String {
    format!("_INBOX_client.{tenant}.{user}")
}

/// Below which a worker's request names the subject of its reply.
pub fn worker_inbox(identity: &WorkerIdentity) -> String {
    format!("_INBOX_worker.{identity}")
}

/// Below which a dispatcher's request names the subject of its reply.
pub const DISPATCHER_INBOX: &str = "_INBOX_dispatcher";

/// Below which a gateway's request names the subject of its reply: it asks for the users of all tenants.
pub const GATEWAY_INBOX: &str = "_INBOX_gateway";

/// Below which replies arrive on a server without permissions. With permissions nobody listens there.
pub const OPEN_INBOX: &str = "_INBOX";

/// Dispatchers share requests in this queue group: one of them answers.
pub const DISPATCHERS: &str = "dispatchers";

/// Below which nats-server itself names the reply of a request from another account. It refuses senders who name one.
const OTHER_ACCOUNT: &str = "_R_";

/// Whether a reply to a request may be sent there: below the inbox of who asked, below [`OPEN_INBOX`], or back to another
/// account.
pub fn may_reply(request: &str, reply: &str) -> bool {
    let is_below = |inbox: &str| reply.strip_prefix(inbox).is_some_and(|rest| rest.starts_with('.'));
    let is_own = match (caller(request), worker_caller(request)) {
        (Some(caller), _) => match caller.door {
            Door::Nats => is_below(&user_inbox(&caller.tenant, &caller.user)),
            Door::Http => is_below(GATEWAY_INBOX),
        },
        (None, Some(worker)) => is_below(&worker_inbox(&worker.identity)),
        (None, None) => false,
    };
    is_own || is_below(OPEN_INBOX) || is_below(OTHER_ACCOUNT)
}

/// Stream of jobs.
pub const JOBS_STREAM: &str = "JOBS";
/// A job that nobody took for so long is dropped from its stream; its call is published again if it still waits.
pub const MAX_JOB_AGE: Duration = Duration::from_mins(10);
/// Stream of reports.
pub const RESULTS_STREAM: &str = "RESULTS";
/// Stream of submissions.
pub const INTAKE_STREAM: &str = "INTAKE";

/// Header with the W3C trace context of a submission or a job.
pub const TRACEPARENT: &str = "traceparent";

/// Header of a gateway's request with the id of the token that it was shown. It gives no rights, and may take some.
pub const TOKEN: &str = "redial-token";

/// Header of a message without a body, which travelled in pieces: a [`crate::Payload`].
pub const PAYLOAD: &str = "redial-payload";

/// Header of a request whose sender can read a reply in pieces. Its value says nothing.
pub const TAKES_PAYLOADS: &str = "redial-takes-payloads";

/// Header of a message of a stream, or of a request, with the version of the contract of its sender ([`crate::CONTRACT`]). Without it,
/// that is the first one.
pub const CONTRACT: &str = "redial-contract";

/// Header of a reply whose body is a [`crate::ApiError`] instead of the documented reply; its value is the code.
pub const ERROR: &str = "redial-error";

/// Consumers that a pool may have: so many sets of tools at a time. The permissions of workers name them one by one.
pub const MAX_CONSUMERS: u32 = 16;

/// The name of a consumer: the workers of a pool that have the same tools share one. The first one of a pool is named
/// like the pool.
pub fn consumer_name(pool: &str, n: u32) -> String {
    if n <= 1 { pool.to_owned() } else { format!("{pool}+{n}") }
}

/// Checks the name of a consumer. The error says what is allowed.
pub fn check_consumer_name(name: &str) -> Result<(), String> {
    let (pool, number) = name.split_once('+').map_or((name, None), |(pool, number)| (pool, Some(number)));
    if number.is_some_and(|number| number.parse::<u32>().is_err()) {
        return Err(format!("consumer {name:?}: the name of a pool is allowed, and '+' and a number behind it"));
    }
    check_name("pool", pool)
}

/// Jobs of a tool for the workers of a consumer.
pub fn job(consumer: &str, tool: &str) -> String {
    format!("redial.jobs.{consumer}.{tool}")
}

/// A pack of so many jobs of a tool. The number is in the subject, so that the stream's sums by subject say how many jobs wait.
pub fn pack(consumer: &str, tool: &str, jobs: usize) -> String {
    format!("redial.jobs.{consumer}.{tool}.{jobs}")
}

/// Consumer, tool and number of jobs of a message of the job stream. Neither name contains a dot.
pub fn read_job(subject: &str) -> Option<(&str, &str, u64)> {
    let mut tokens = subject.strip_prefix("redial.jobs.")?.split('.');
    let (consumer, tool) = (tokens.next()?, tokens.next()?);
    let jobs = tokens.next().map_or(Some(1), |jobs| jobs.parse().ok())?;
    tokens.next().is_none().then_some((consumer, tool, jobs))
}

/// All jobs for the workers of a consumer.
pub fn consumer_jobs(consumer: &str) -> String {
    format!("redial.jobs.{consumer}.>")
}

/// Control messages to a worker: a [`crate::ControlMessage`].
pub fn worker(worker: &WorkerId) -> String {
    format!("redial.worker.{}.{worker}", worker.identity())
}

/// The end of a call with `notify`: a [`crate::CallView`].
pub fn call_events(tenant: &str, call: CallId) -> String {
    format!("redial.events.{tenant}.calls.{call}")
}

/// News of a task: a [`crate::TaskNotice`].
pub fn task_events(tenant: &str, task: TaskId) -> String {
    format!("redial.events.{tenant}.tasks.{task}")
}

/// A model's answer while it is being written: a [`crate::Delta`].
pub fn task_deltas(tenant: &str, task: TaskId) -> String {
    format!("redial.events.{tenant}.tasks.{task}.delta")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_is_read_from_the_subject() {
        let (tenant, user): (Tenant, User) = ("acme".parse().unwrap(), "alice".parse().unwrap());
        for &verb in Verb::ALL {
            for door in [Door::Nats, Door::Http] {
                let subject = api(door, &tenant, &user, verb.roles()[0], verb);
                let (tenant, user, role) = (tenant.clone(), user.clone(), verb.roles()[0]);
                assert_eq!(caller(&subject), Some(Caller { tenant, user, role, door, token: None }), "{subject}");
            }
        }
        for &what in Intake::VARIANTS {
            let subject = intake(&tenant, &user, UserRole::Submit, what);
            let (caller, read) = intake_caller(&subject).unwrap();
            assert_eq!((caller.tenant.as_str(), caller.user.as_str(), read), ("acme", "alice", what));
        }
    }

    #[test]
    fn pieces_travel_beside_the_request() {
        for (request, pieces) in [
            ("redial.api.acme.alice.submit.calls.submit", Some("redial.api.acme.alice.submit.payloads.piece")),
            ("redial.gateway.acme.bob.read.calls.get", Some("redial.gateway.acme.bob.read.payloads.piece")),
            ("redial.ctl.tools.a+b.claim", Some("redial.ctl.tools.a+b.payloads.piece")),
            ("redial.results.tools", None),
            ("redial.api.acme", None),
        ] {
            assert_eq!(pieces_beside(request).as_deref(), pieces, "{request}");
        }
    }

    #[test]
    fn any_other_subject_names_nobody() {
        for subject in [
            "",
            "redial.api.acme",
            "redial.api.acme.alice",
            "redial.api.acme.alice.root.calls.get",
            "redial.api.a b.alice.read.calls.get",
            "redial.events.acme.alice.read.calls.get",
        ] {
            assert_eq!(caller(subject), None, "{subject}");
        }
        for subject in
            ["redial.intake.acme.alice.submit", "redial.intake.acme.alice.submit.x.calls", "redial.intake.calls"]
        {
            assert_eq!(intake_caller(subject), None, "{subject}");
        }
        assert_eq!(results_identity("redial.results.a.b"), None);
    }

    #[test]
    fn replies_go_to_the_inbox_of_who_asked() {
        let user = "redial.api.acme.alice.read.calls.get";
        let gateway = "redial.gateway.acme.alice.read.calls.get";
        let worker = "redial.ctl.tools.default.claim";
        for (request, reply) in [
            (user, "_INBOX_client.acme.alice.x.1"),
            (worker, "_INBOX_worker.tools.x"),
            (user, "_INBOX.x"),
            (worker, "_INBOX.x"),
            (worker, "_R_.a.b"),
            (gateway, "_INBOX_gateway.x.1"),
        ] {
            assert!(may_reply(request, reply), "{request} {reply}");
        }
        for (request, reply) in [
            (user, "_INBOX_client.acme.bob.x"),
            (user, "_INBOX_client.acme.alice"),
            (user, "_INBOX_client.acme.alicea.x"),
            (user, "_INBOX_worker.tools.x"),
            (user, "_INBOX_gateway.x.1"),
            (worker, "_INBOX_gateway.x.1"),
            (gateway, "_INBOX_client.acme.alice.x"),
            (gateway, "_INBOX_gateway"),
            (gateway, "_INBOX_gateways.x"),
            (worker, "_INBOX_worker.tools2.x"),
            (worker, "_INBOX_client.acme.alice.x"),
            (user, "redial.jobs.x.y"),
            (user, "$JS.API.CONSUMER.DELETE.JOBS.default"),
            (user, "_INBOX"),
            (user, "_INBOXES.x"),
            (user, ""),
        ] {
            assert!(!may_reply(request, reply), "{request} {reply}");
        }
    }

    #[test]
    fn a_subject_says_how_many_jobs_its_message_has() {
        assert_eq!(read_job(&job("default", "echo")), Some(("default", "echo", 1)));
        assert_eq!(read_job(&pack("default+2", "echo", 50)), Some(("default+2", "echo", 50)));
        for other in ["redial.jobs.default", "redial.jobs.a.b.c", "redial.jobs.a.b.1.2", "redial.results.w"] {
            assert_eq!(read_job(other), None, "{other}");
        }
    }

    #[test]
    fn pools_are_read_from_the_subject() {
        let identity: WorkerIdentity = "tools".parse().unwrap();
        let of = |pools: &[&str]| {
            let token = pools_token(pools.iter().copied()).unwrap();
            worker_caller(&control(&identity, &token, ControlVerb::Claim)).unwrap()
        };
        let two = of(&["search", "default", "search"]);
        assert_eq!((two.identity.as_str(), two.pools()), ("tools", "default+search"));
        assert!(two.may_serve("default") && two.may_serve("search"));
        assert!(!two.may_serve("models") && !two.may_serve("default+search") && !two.may_serve(""));
        assert!(of(&[]).may_serve("models"));
        assert!(pools_token(["a+b"]).is_err() && pools_token(["a.b"]).is_err());
        let many: Vec<String> = (0..100).map(|n| format!("{n:064}")).collect();
        assert!(pools_token(many.iter().map(String::as_str)).unwrap_err().contains("allowed: 2000"));
    }
}
