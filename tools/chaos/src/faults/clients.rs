//! Hostile clients: a user and a worker identity, each with credentials of its own, try everything to reach what is not
//! theirs. What they receive is searched; what they must not change is checked at the end like everything else.

use redial_proto::{CallId, ClaimId, Submission, TaskId, UserRole, subjects::Verb};
use redial_testkit::canary;
use serde_json::{Value, json};

use super::{Injector, LOOK, Outcome, PATIENCE, Target, reached, reached_within};
use crate::{
    access::{MALLORY, ROGUE, TENANTS},
    fixture::Fixture,
    load,
    stranger::Stranger,
};

/// Calls and tasks of the other tenant that are asked for.
const SOME: i64 = 5;
/// Requests without a pause.
const FLOOD: i64 = 1_000;
/// Submissions that cannot be read, without a pause; each becomes a dead letter.
const LITTER: i64 = 50;
/// Where an answer must not go, with the rights of whoever answers.
const REPLIES: [&str; 9] = [
    "_INBOX_client.acme.alice.answers",
    "_INBOX_worker.tools.answers",
    "redial.events.acme.calls.forged",
    "redial.api.acme.alice.submit.calls.submit",
    "redial.intake.acme.alice.submit.calls",
    "redial.results.tools",
    "redial.jobs.default.read",
    "$JS.API.STREAM.PURGE.INTAKE",
    "$JS.API.CONSUMER.DELETE.JOBS.default",
];

impl Injector {
    /// See the module.
    pub(super) async fn hostile_clients(&mut self) -> anyhow::Result<Outcome> {
        let (pulse, last) = (self.pulse(), self.last_dead_letter().await?);
        self.intake_works().await?;
        self.aside_is_pinned().await?;
        let observer = &self.fixture.observer;
        let mut theirs = None;
        reached(async || {
            theirs = observer.ids_of(TENANTS[0].0, SOME).await;
            theirs.is_some()
        })
        .await;
        let theirs = theirs.ok_or_else(|| anyhow::anyhow!("the database did not answer for {PATIENCE:?}"))?;
        let (mallory, rogue) = Fixture::strangers()?;
        let server = self.fixture.servers.one_nats_url();
        let mut mallory = Stranger::connect(server, &mallory, self.fixture.mallory.clone()).await?;
        let mut rogue = Stranger::connect(server, &rogue, self.fixture.rogue.clone()).await?;
        mallory.subscribe_everywhere().await?;
        rogue.subscribe_everywhere().await?;
        let number = self.number();
        ask_as_everybody(&mut mallory, &theirs).await?;
        forge_replies(&mut mallory, number, &theirs).await?;
        work_for_others(&mut rogue, &theirs.0).await?;
        flood(&mut mallory, &theirs.0).await?;
        let good = self.put_good(None).await?;
        let outcome = Outcome::recovered(self.on_record(&good).await).counts_for(Target::HostileClients);
        self.litter_is_kept(last).await;
        if self.fixture.observer.attempts_of(ROGUE.0).await != Some(0) {
            self.wrong.push("a worker of another pool ran calls".to_owned());
        }
        let refusals = mallory.refusals() + rogue.refusals();
        if refusals == 0 {
            self.wrong.push("NATS refused nothing of what hostile clients tried".to_owned());
        }
        Ok(outcome.with(self.longest_pause(pulse).await).noted(format!("NATS refused {refusals} of their messages")))
    }

    /// All of the litter is kept as that of the tenant that sent it, and no other submission of anybody. A repeated report
    /// may be one of the dead letters of its own source.
    async fn litter_is_kept(&mut self, last: i64) {
        let observer = &self.fixture.observer;
        let all = Some(vec![(Some(MALLORY.0.to_owned()), LITTER)]);
        reached_within(PATIENCE, async || observer.rejected_submissions(last).await == all).await;
        // More of them would come at once.
        tokio::time::sleep(10 * LOOK).await;
        let found = observer.rejected_submissions(last).await;
        if found != all {
            self.wrong.push(format!("{found:?} dead letters for {LITTER} submissions that cannot be read"));
        }
    }
}

/// Every verb with the ids of the other tenant: as itself, in every role, and as a user of that tenant.
async fn ask_as_everybody(mallory: &mut Stranger, theirs: &(Vec<CallId>, Vec<TaskId>)) -> std::io::Result<()> {
    let (inbox, (tenant, user)) = (mallory.inbox(), TENANTS[0]);
    let (calls, tasks) = theirs;
    for (call, task) in calls.iter().zip(tasks.iter().cycle().map(Some).chain(std::iter::repeat(None))) {
        let body = json!({"call": call, "calls": [call], "task": task, "tool": load::PROBED, "arguments": {}, "input": "?",
            "agent": {"model": load::MODEL}, "conversation": "conversation-0", "confirm": true});
        let asks_about_one =
            json!({"call": call, "calls": calls, "task": task, "after_step": 0, "language": "en"}).to_string();
        for &verb in Verb::ALL {
            for role in UserRole::ALL {
                let theirs = format!("redial.api.{tenant}.{user}.{}.{}", role.as_str(), verb.name());
                mallory.publish(&theirs, &inbox, body.to_string().as_bytes()).await?;
                let own = format!("redial.api.{}.{}.{}.{}", MALLORY.0, MALLORY.1, role.as_str(), verb.name());
                mallory.publish(&own, &inbox, asks_about_one.as_bytes()).await?;
            }
        }
    }
    mallory.flush().await
}

/// Valid requests and submissions of its own tenant, whose answers are to go where it may not publish; and a task in a
/// conversation that the other tenant has, too.
async fn forge_replies(
    mallory: &mut Stranger,
    number: u64,
    theirs: &(Vec<CallId>, Vec<TaskId>),
) -> std::io::Result<()> {
    let (tenant, user) = MALLORY;
    let (intake, inbox) = (format!("redial.intake.{tenant}.{user}.submit.calls"), mallory.inbox());
    let of = |verb: Verb, role: UserRole| format!("redial.api.{tenant}.{user}.{}.{}", role.as_str(), verb.name());
    for (n, reply) in REPLIES.iter().enumerate() {
        let call = |way: &str| Submission {
            key: Some(format!("hostile-{number}-{n}-{way}")),
            notify: true,
            ..Submission::new(
                load::PROBED,
                redial_testkit::arguments(json!({"output": json!(canary(tenant)).to_string()})),
            )
        };
        mallory.publish(&intake, reply, &bytes(&json!(call("stream")))).await?;
        mallory.publish(&of(Verb::CallSubmit, UserRole::Submit), reply, &bytes(&json!(call("request")))).await?;
        let about = json!({"call": theirs.0.first(), "task": theirs.1.first(), "after_step": 0});
        mallory.publish(&of(Verb::CallGet, UserRole::Read), reply, &bytes(&about)).await?;
        mallory.publish(&of(Verb::TaskGet, UserRole::Read), reply, &bytes(&about)).await?;
    }
    let agent = json!({"model": load::MODEL, "tools": [load::PROBED]});
    let task = json!({"input": format!("What was said before? {}", canary(tenant)), "agent": agent,
        "conversation": "conversation-0", "key": format!("hostile-{number}")});
    mallory.publish(&of(Verb::TaskSubmit, UserRole::Inline), &inbox, &bytes(&task)).await?;
    mallory.flush().await
}

/// Claims, reports and registers as other identities, and as itself what is not its own.
async fn work_for_others(rogue: &mut Stranger, calls: &[CallId]) -> std::io::Result<()> {
    let (inbox, (own, pool)) = (rogue.inbox(), ROGUE);
    for (identity, pools, worker) in [
        ("tools", "default", "tools-000000000000"),
        ("models", "models", "models-000000000000"),
        (own, "default", "rogue-000000000000"),
        (own, pool, "tools-000000000000"),
        (own, pool, "rogue-000000000000"),
    ] {
        let subject = |verb: &str| format!("redial.ctl.{identity}.{pools}.{verb}");
        for tool in [load::PROBED, load::FRAGILE, load::ASIDE] {
            let spec = |pool: &str| json!({"name": tool, "description": "mine", "parameters": {"type": "object"}, "pool": pool});
            for pool in [pool, "default"] {
                let registration = json!({"worker": worker, "started_at": "2026-11-23T00:00:00Z", "slots": 1, "version": "1",
                    "tools": [spec(pool)]});
                rogue.publish(&subject("register"), &inbox, &bytes(&registration)).await?;
            }
        }
        for call in calls {
            let job = json!({"call": call, "attempt": 1, "tool": load::PROBED});
            let claim = json!({"claim": ClaimId::generate(), "worker": worker, "jobs": [job]});
            rogue.publish(&subject("claim"), &inbox, &bytes(&claim)).await?;
        }
    }
    for subject in [
        "$JS.API.CONSUMER.MSG.NEXT.JOBS.default",
        "$JS.API.CONSUMER.MSG.NEXT.JOBS.models",
        "$JS.API.CONSUMER.MSG.NEXT.RESULTS.dispatchers",
        "$JS.API.STREAM.MSG.GET.INTAKE",
        "$JS.API.STREAM.DELETE.JOBS",
        "$JS.API.STREAM.PURGE.INTAKE",
        "$JS.API.CONSUMER.DELETE.JOBS.default",
        "redial.results.tools",
        "redial.jobs.default.read",
    ] {
        rogue.publish(subject, &inbox, br#"{"batch":10,"expires":1000000000}"#).await?;
    }
    rogue.flush().await
}

/// As much as it can send, readable and not.
async fn flood(mallory: &mut Stranger, calls: &[CallId]) -> std::io::Result<()> {
    let ((tenant, user), inbox) = (MALLORY, mallory.inbox());
    let get = format!("redial.api.{tenant}.{user}.read.calls.get");
    let (call, intake) = (json!({"call": calls.first()}), format!("redial.intake.{tenant}.{user}.submit.calls"));
    for n in 0..FLOOD {
        let body = if n % 2 == 0 { bytes(&call) } else { b"[[".to_vec() };
        mallory.publish(&get, &inbox, &body).await?;
        if n % (FLOOD / LITTER) == 0 {
            mallory.publish(&intake, &inbox, format!("{{\"{n}").as_bytes()).await?;
        }
    }
    mallory.flush().await
}

fn bytes(message: &Value) -> Vec<u8> {
    message.to_string().into_bytes()
}
