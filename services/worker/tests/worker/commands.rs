//! The limit of command tools, with real programs.

use std::{collections::HashSet, fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use redial_proto::JobRef;
use redial_worker::{CommandUser, Tool, Worker, WorkerConfig};

use crate::{
    dispatcher::{Dispatcher, Received, RunningWorker, jobs_of},
    within,
};

/// Notes its start and its end, and waits for the file `open` in between.
const GATED: &str = r#"echo start >> events
while [ ! -e open ]; do sleep 0.02; done
echo end >> events
echo '"done"'
"#;

const TOOLS: &str = r#"[[tool]]
name = "gated"
[tool.command]
argv = ["sh", "gated.sh"]
"#;

/// A folder with a program, and the manifest of the tool `gated` that runs it.
struct Programs {
    folder: tempfile::TempDir,
}

impl Programs {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // As root, programs run as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(folder.path().join("gated.sh"), GATED).unwrap();
        fs::write(folder.path().join("tools.toml"), TOOLS).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    async fn start(&self, dispatcher: &mut Dispatcher, command_slots: u32, more: Option<Tool>) -> RunningWorker {
        let command_user = CommandUser::own_or_unprivileged().unwrap();
        let config = WorkerConfig { command_slots, command_user, ..dispatcher.config() };
        let worker = Worker::new(config).manifest(self.path().join("tools.toml")).unwrap();
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
async fn a_call_whose_program_must_wait_is_not_claimed() {
    let mut dispatcher = Dispatcher::start().await;
    let programs = Programs::new();
    let worker = programs.start(&mut dispatcher, 2, Some(Tool::echo())).await;
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
    let backlog = dispatcher.queue.ensure_jobs("commands").await.unwrap();
    assert_eq!(backlog.unacked, 0, "a job waits in the worker, where no other can take it");
    programs.open();
    succeed(&mut dispatcher, jobs).await;
    assert_eq!(programs.running(), (0, 2));
    worker.stop().await;
}

#[tokio::test]
async fn stopping_leaves_the_calls_that_wait_to_other_workers() {
    let mut dispatcher = Dispatcher::start().await;
    let programs = Programs::new();
    let worker = programs.start(&mut dispatcher, 1, None).await;
    let jobs = dispatcher.submit_many("commands", "gated", 5, 2).await;
    programs.until_running(1).await;
    let first = jobs_of(&dispatcher.claim().await);
    worker.shutdown.cancel();
    assert_eq!(dispatcher.released().await, first, "only the call whose program ran was this worker's");
    worker.ended().await;
    assert!(!dispatcher.received().iter().any(|received| matches!(received, Received::Claim(_))));
    // The released one is published again by the dispatchers; the others are still on the stream.
    programs.open();
    let other = programs.start(&mut dispatcher, 1, None).await;
    succeed(&mut dispatcher, jobs.into_iter().filter(|job| !first.contains(job))).await;
    other.stop().await;
}
