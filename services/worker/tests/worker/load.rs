use std::time::Instant;

use redial_worker::Tool;

use crate::{dispatcher::Dispatcher, tools, within};

/// Resident memory of this process in MB (Linux): the worker, the scripted dispatcher and the test.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_slow_calls_run_at_once() {
    const CALLS: usize = 10_000;
    let mut dispatcher = Dispatcher::start().await;
    let (gated, gate) = tools::gated("gated");
    let before = memory();
    let worker = dispatcher.worker(10_000, [gated]).await;
    dispatcher.submit_many("default", "gated", CALLS, 2).await;
    let started = Instant::now();
    within(300, gate.until_running(CALLS)).await;
    let (took, used) = (started.elapsed(), memory().saturating_sub(before));
    println!("{CALLS} calls running after {took:?}, {used} MB");
    assert!(used < 150, "{used} MB");
    dispatcher.stream_is_empty().await;
    gate.open(CALLS);
    for _ in 0..CALLS {
        dispatcher.report().await;
    }
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fast_calls_are_claimed_in_batches() {
    const CALLS: usize = 5_000;
    let mut dispatcher = Dispatcher::start().await;
    dispatcher.submit_many("default", "echo", CALLS, 2).await;
    let started = Instant::now();
    let worker = dispatcher.worker(256, [Tool::echo()]).await;
    let (mut reports, mut claims) = (0, 0);
    while reports < CALLS {
        dispatcher
            .next(|received| {
                match received {
                    crate::dispatcher::Received::Report(_) => reports += 1,
                    crate::dispatcher::Received::Claim(_) => claims += 1,
                    _ => return None,
                }
                Some(())
            })
            .await;
    }
    println!("{CALLS} calls in {:?}, {claims} claims", started.elapsed());
    assert!(claims < CALLS / 4, "{claims} claims for {CALLS} calls");
    worker.stop().await;
}
