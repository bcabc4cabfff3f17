//! The limit of command tools, with real programs.

use std::{collections::HashSet, fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use redial_proto::{ErrorClass, JobRef};
use redial_worker::{CommandUser, Tool, Worker, WorkerConfig};

use crate::{
    dispatcher::{Dispatcher, Received, RunningWorker, jobs_of},
    tools, within,
};

/// Notes its start and its end, and waits for the file `open` in between.
const GATED: &str = r#"echo start >> events
while [ ! -e open ]; do sleep 0.02; done
echo end >> events
echo '"done"'
"#;

/// Notes its start and its end, and computes for a moment in between.
const BUSY: &str = r#"echo start >> events
sleep 0.05
echo end >> events
echo '"done"'
"#;

/// A folder with a program and a manifest of tools that run it: name and more lines for each.
struct Programs {
    folder: tempfile::TempDir,
}

impl Programs {
    fn new(script: &str, tools: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // As root, programs run as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(folder.path().join("script.sh"), script).unwrap();
        let entry = |(name, lines): &(&str, &str)| {
            format!("[[tool]]\nname = \"{name}\"\n{lines}\n[tool.command]\nargv = [\"sh\", \"script.sh\"]\n")
        };
        fs::write(folder.path().join("tools.toml"), tools.iter().map(entry).collect::<String>()).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn worker(&self, config: WorkerConfig, command_slots: u32) -> Worker {
        let command_user = CommandUser::own_or_unprivileged().unwrap();
        let config = WorkerConfig { command_slots, command_user, ..config };
        Worker::new(config).manifest(self.path().join("tools.toml")).unwrap()
    }

    async fn start(&self, dispatcher: &mut Dispatcher, command_slots: u32, more: Vec<Tool>) -> RunningWorker {
        let worker = self.worker(dispatcher.config(), command_slots);
        dispatcher.start_worker(more.into_iter().fold(worker, Worker::add)).await
    }

    fn open(&self) {
        fs::write(self.path().join("open"), "").unwrap();
    }

    /// How many programs run, and how many ever ran at once. Each line is written at once, so none is torn.
    fn running(&self) -> (usize, usize) {
        let events = fs::read_to_string(self.path().join("events")).unwrap_or_default();
        let (mut now, mut most) = (0_usize, 0_usize);
        for event in events.lines() {
            now = if event == "start" { now + 1 } else { now - 1 };
            most = most.max(now);
        }
        (now, most)
    }

    async fn until_running(&self, programs: usize) {
        within(20, async {
            while self.running().0 != programs {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

/// Waits for reports of all these jobs, each a success.
async fn succeed(dispatcher: &mut Dispatcher, jobs: impl IntoIterator<Item = JobRef>) {
    let mut open: HashSet<JobRef> = jobs.into_iter().collect();
    while !open.is_empty() {
        let report = dispatcher.report().await;
        assert!(report.error.is_none(), "{report:?}");
        open.remove(&report.job_ref());
    }
}

#[tokio::test]
async fn programs_never_run_over_their_limit_and_all_complete() {
    let mut dispatcher = Dispatcher::start().await;
    let programs = Programs::new(BUSY, &[("one", ""), ("other", "")]);
    let worker = programs.start(&mut dispatcher, 3, Vec::new()).await;
    let mut jobs = dispatcher.submit_many("commands", "one", 20, 2).await;
    jobs.extend(dispatcher.submit_many("commands", "other", 20, 2).await);
    succeed(&mut dispatcher, jobs).await;
    assert_eq!(programs.running(), (0, 3), "programs that run, and most at once");
    worker.stop().await;
}

#[tokio::test]
async fn a_call_whose_program_must_wait_is_not_claimed() {
    let mut dispatcher = Dispatcher::start().await;
    let programs = Programs::new(GATED, &[("gated", "")]);
    let worker = programs.start(&mut dispatcher, 2, vec![Tool::echo()]).await;
    let jobs = dispatcher.submit_many("commands", "gated", 8, 2).await;
    programs.until_running(2).await;
    // Others are not delayed, however many there are.
    let quick = dispatcher.submit_many("default", "echo", 100, 2).await;
    let mut claimed = HashSet::new();
    let mut open: HashSet<JobRef> = quick.iter().copied().collect();
    while !open.is_empty() {
        dispatcher
            .next(|received| match received {
                Received::Claim(claim) => {
                    claimed.extend(jobs_of(&claim));
                    Some(())
                }
                Received::Report(report) => {
                    open.remove(&report.job_ref());
                    Some(())
                }
                _ => None,
            })
            .await;
    }
    let programs_claimed = || jobs.iter().filter(|job| claimed.contains(job)).count();
    assert_eq!((programs.running(), programs_claimed()), ((2, 2), 2));
    let backlog = dispatcher.queue.jobs_depth("commands").await.unwrap();
    assert_eq!(backlog.unacked, 0, "a job waits in the worker, where no other can take it");
    programs.open();
    succeed(&mut dispatcher, jobs).await;
    assert_eq!(programs.running(), (0, 2));
    worker.stop().await;
}

#[tokio::test]
async fn stopping_leaves_the_calls_that_wait_to_other_workers() {
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.script().effect = redial_proto::ToolEffect::Read;
    let programs = Programs::new(GATED, &[("gated", "")]);
    let worker = programs.start(&mut dispatcher, 1, Vec::new()).await;
    let jobs = dispatcher.submit_many("commands", "gated", 5, 2).await;
    programs.until_running(1).await;
    let first = jobs_of(&dispatcher.claim().await);
    worker.shutdown.cancel();
    let released =
        dispatcher.next(|received| if let Received::Release(released) = received { Some(released) } else { None });
    let released: Vec<_> = released.await.jobs.iter().map(redial_proto::GrantRef::job_ref).collect();
    assert_eq!(released, first, "only the call whose program ran was this worker's");
    worker.ended().await;
    assert!(!dispatcher.received().iter().any(|received| matches!(received, Received::Claim(_))));
    // The released one is published again by the dispatchers; the others are still on the stream.
    programs.open();
    let other = programs.start(&mut dispatcher, 1, Vec::new()).await;
    succeed(&mut dispatcher, jobs.into_iter().filter(|job| !first.contains(job))).await;
    other.stop().await;
}

#[tokio::test]
async fn the_limit_holds_over_all_pools() {
    let mut dispatcher = Dispatcher::start().await;
    let programs = Programs::new(
        BUSY,
        &[("one", ""), ("few", "pool = \"limited\"\nconcurrency = 3"), ("mixed", "pool = \"default\"")],
    );
    let (gated, gate) = tools::gated("gated");
    let worker = programs.start(&mut dispatcher, 2, vec![gated]).await;
    let mut jobs = Vec::new();
    for (pool, tool) in [("commands", "one"), ("limited", "few"), ("default", "mixed")] {
        jobs.extend(dispatcher.submit_many(pool, tool, 8, 2).await);
    }
    // In the same pool as a command tool, and not delayed by it.
    let native = dispatcher.submit_many("default", "gated", 20, 2).await;
    within(20, gate.until_running(20)).await;
    gate.open(20);
    succeed(&mut dispatcher, jobs.into_iter().chain(native)).await;
    assert_eq!(programs.running(), (0, 2));
    worker.stop().await;
}

#[tokio::test]
async fn the_timeout_begins_when_the_program_starts() {
    let mut dispatcher = Dispatcher::start().await;
    let programs = Programs::new(GATED, &[("gated", "")]);
    let worker = programs.start(&mut dispatcher, 1, Vec::new()).await;
    // The first one may run for 60 s.
    let mut jobs = dispatcher.submit_many("commands", "gated", 1, 2).await;
    programs.until_running(1).await;
    dispatcher.script().timeout_ms = 10_000;
    jobs.extend(dispatcher.submit_many("commands", "gated", 1, 2).await);
    // The second one waits for longer than its timeout.
    tokio::time::sleep(Duration::from_secs(11)).await;
    programs.open();
    succeed(&mut dispatcher, jobs).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_program_that_just_fails_is_reported_without_its_words() {
    let mut dispatcher = Dispatcher::start().await;
    let programs = Programs::new("echo 'KeyError: 7' >&2; exit 1", &[("broken", "")]);
    let worker = programs.start(&mut dispatcher, 1, Vec::new()).await;
    dispatcher.submit_many("commands", "broken", 1, 2).await;
    let error = dispatcher.report().await.error.unwrap();
    assert_eq!((error.class, error.message.as_str()), (ErrorClass::ToolFailed, "the program ended with exit code 1"));
    assert_eq!(error.diagnostics.as_deref(), Some("KeyError: 7"));
    worker.stop().await;
}
