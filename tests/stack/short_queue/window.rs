//! The window: NATS holds a few jobs, Postgres the rest.

use redial_engine::window::LEAST;
use redial_store::Purpose;
use redial_test_stack::{Servers, Stack, until_within};

use super::fixture::{LONG, busy, count, jobs, steady, steady_on, submit, tool, waiting};

#[tokio::test]
async fn a_pool_that_does_not_move_fills_its_window_and_no_more() {
    let mut stack = steady().await;
    stack.dispatch().await;
    let release = redial_test_stack::unique_path("release");
    busy(&mut stack, "stuck", "slow", &release).await;
    stack.work(vec![tool(&stack, "good")]).await;
    submit(&stack, "slow", 3 * LEAST).await;
    // At most a window for each dispatcher, however late they see what the other one published.
    let bound = 2 * LEAST;
    let published = jobs(&stack, "slow").await;
    assert!(published <= bound && published > 0, "{published} jobs are on the stream");
    assert!(waiting(&stack, "slow").await > 0);
    // Others do not wait for it.
    submit(&stack, "good", 500).await;
    count(&stack, "good", "succeeded", 500).await;
    assert!(jobs(&stack, "slow").await <= bound);
    std::fs::write(&release, "").unwrap();
    stack.drained(LONG).await;
    stack.finish().await;
}

/// Wipes the store. How often it was filled, how often a call was put back at most, and how many jobs are on the stream then.
async fn wiped_and_filled(stack: &mut Stack) -> (i64, i64, u64) {
    sqlx::raw_sql("TRUNCATE fillings, put_back").execute(stack.db()).await.unwrap();
    stack.servers.kill_nats().await;
    stack.servers.wipe_nats();
    stack.servers.start_nats().await;
    until_within(LONG, "the jobs are back", async || {
        let jobs = stack.queue().unclaimed_jobs().await.ok()?;
        (jobs.values().map(|unclaimed| unclaimed.jobs).sum::<u64>() >= 500).then_some(())
    })
    .await;
    // What every dispatcher asks before it puts calls back: one has done it for this stream.
    let created = stack.queue().ensure_job_stream().await.unwrap().jobs_created;
    assert_eq!(stack.store(Purpose::Dispatch).await.adopt_job_stream(created, None).await.unwrap(), None);
    let times = "SELECT (SELECT count(*) FROM fillings), max(n)
                 FROM (SELECT count(*) AS n FROM put_back GROUP BY call) AS of_call";
    let (fillings, most): (i64, i64) = sqlx::query_as(times).fetch_one(stack.db()).await.unwrap();
    (fillings, most, jobs(stack, "slow").await)
}

#[tokio::test]
async fn a_wiped_store_is_filled_again_by_one_dispatcher() {
    let mut stack = steady_on(Servers::start_own().await).await;
    for _ in 0..3 {
        stack.dispatch().await;
    }
    let release = redial_test_stack::unique_path("release");
    busy(&mut stack, "default", "slow", &release).await;
    submit(&stack, "slow", 500).await;
    until_within(LONG, "the jobs are on the stream", async || (jobs(&stack, "slow").await == 500).then_some(())).await;
    let notes = "CREATE TABLE fillings (at timestamptz NOT NULL);
                 CREATE TABLE put_back (call uuid NOT NULL);
                 CREATE FUNCTION note_filling() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                     INSERT INTO fillings VALUES (NEW.requeued_at);
                     RETURN NULL;
                 END $$;
                 CREATE FUNCTION note_call() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                     IF current_query() LIKE '-- Puts unclaimed calls back%' THEN
                         INSERT INTO put_back VALUES (NEW.id);
                     END IF;
                     RETURN NULL;
                 END $$;
                 CREATE TRIGGER note AFTER UPDATE ON job_stream FOR EACH ROW
                     WHEN (OLD.requeued_at <> NEW.requeued_at) EXECUTE FUNCTION note_filling();
                 CREATE TRIGGER note AFTER UPDATE ON calls FOR EACH ROW
                     WHEN (OLD.backlog_at IS NULL AND NEW.backlog_at IS NOT NULL) EXECUTE FUNCTION note_call()";
    sqlx::raw_sql(notes).execute(stack.db()).await.unwrap();
    // On a machine in full use a dispatcher may meet another outage, and puts back what was published shortly before.
    let mut filled = Vec::new();
    while filled.len() < 3 && filled.last() != Some(&(1, 1, 500)) {
        filled.push(wiped_and_filled(&mut stack).await);
    }
    assert!(filled.contains(&(1, 1, 500)), "{filled:?}: fillings, how often a call was put back, jobs on the stream");
    std::fs::write(&release, "").unwrap();
    stack.drained(LONG).await;
    stack.finish().await;
}
