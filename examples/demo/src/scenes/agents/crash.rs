//! Everything is killed with SIGKILL twice: while a tool runs, and between its result and the model's next turn. The
//! task goes on each time as if nothing had happened, and no tool does its work twice.
//!
//! Nothing here is left to luck. The first time, the order waits behind the closed door of the warehouse. The second
//! time, `redial dev` runs without a worker, so there is nobody to play the model.

use std::collections::HashSet;

use anyhow::{Context, ensure};
use chrono::{DateTime, Utc};
use redial_proto::{TaskDecision, TaskId, TaskInput};

use crate::{
    stage::{Stage, books::Entry, until},
    task::Task,
};

pub(super) async fn play(stage: &mut Stage) -> anyhow::Result<String> {
    let earlier = stage.books.warehouse()?.len();
    stage.books.close_warehouse()?;
    let id = stage.submit_task("buyer", "Order 3 boxes of tea, and send the receipt to lin@example.com.").await?;
    let waits = until("the order waits at the warehouse", async || waiting_order(stage, id, earlier).await).await?;
    let Some(waiting) = waits else {
        stage.books.open_warehouse()?;
        return Ok(format!("nothing was ordered: {}", stage.end_of_task(id).await?.told()));
    };
    kill(stage, &waiting.client).await?;
    stage.books.open_warehouse()?;
    stage.start_dev_without_worker().await?;
    stage.start_worker(&waiting.client)?;

    let wanted = async || Ok(wanted_turn(&stage.show_task(id).await?));
    let turn = until("the model's next turn is wanted", wanted).await?;
    let entries = stage.books.warehouse()?.split_off(earlier);
    let done = entries.iter().find(|entry| entry.key == waiting.key && entry.event == "done");
    let second = done.context("the order has a result but was not done")?.client.clone();
    kill(stage, &second).await?;
    let killed_at = Utc::now();
    stage.start_dev().await?;
    stage.start_worker(&second)?;

    let task = stage.end_of_task(id).await?;
    let done = done_once(stage, earlier)?;
    stage.tools_are_there().await?;
    if !stage.is_scripted() {
        return Ok(task.told());
    }
    task.expect(2, 2, 0)?;
    ensure!(done == ["send_receipt", "place_order"], "the warehouse did {done:?}");
    attempts(stage, &task, turn, killed_at).await?;
    Ok(format!(
        "dispatcher, NATS, Postgres and {} killed in mid-order, and again, with {second}, before turn {turn}: \
         place_order was lost and run again, send_receipt was not; at the warehouse each was done once; answered {:?}",
        waiting.client,
        task.answer()
    ))
}

/// Kills a worker, the dispatcher and its servers.
async fn kill(stage: &mut Stage, worker: &str) -> anyhow::Result<()> {
    stage.workers.kill(worker).await?;
    stage.kill_dev().await
}

/// What waits at the warehouse when everything else that the model asked for is over; `Some(None)` if the task has
/// ended without that.
async fn waiting_order(stage: &Stage, id: TaskId, earlier: usize) -> anyhow::Result<Option<Option<Entry>>> {
    let entries = stage.books.warehouse()?.split_off(earlier);
    let asked = entries.iter().find(|entry| entry.what.tool == "place_order" && entry.event == "asked");
    let task = stage.show_task(id).await?;
    let runs = task.decisions().filter(|decision| matches!(decision, TaskDecision::Run { .. })).count();
    let over = task.steps.iter().filter(|step| matches!(step.input, TaskInput::CallEnded { .. })).count();
    match asked {
        Some(asked) if runs == over + 1 => Ok(Some(Some(asked.clone()))),
        _ => Ok(task.has_ended().then_some(None)),
    }
}

/// The turn that a model is asked for, if it has not ended.
fn wanted_turn(task: &Task) -> Option<u32> {
    let turn =
        |decision: &TaskDecision| if let TaskDecision::Turn { turn, .. } = decision { Some(*turn) } else { None };
    task.decisions().filter_map(turn).last().filter(|turn| task.turn_call(*turn).is_err())
}

/// What was done at the warehouse, in order; an error if anything was done twice.
fn done_once(stage: &Stage, earlier: usize) -> anyhow::Result<Vec<String>> {
    let mut done = stage.books.warehouse()?.split_off(earlier);
    done.retain(|entry| entry.event == "done");
    let keys: HashSet<&str> = done.iter().map(|entry| entry.key.as_str()).collect();
    ensure!(keys.len() == done.len(), "something was done twice: {done:?}");
    Ok(done.into_iter().map(|entry| entry.what.tool).collect())
}

/// The order was lost and repeated, nothing else was; and nobody asked the model before the second kill.
async fn attempts(stage: &Stage, task: &Task, turn: u32, killed_at: DateTime<Utc>) -> anyhow::Result<()> {
    let order = stage.show(&task.tool_call((1, 1))?.to_string()).await?;
    ensure!(order.outcomes() == ["lost", "succeeded"], "the order's attempts ended as {:?}", order.outcomes());
    for call in [task.turn_call(1)?, task.tool_call((1, 2))?, task.turn_call(turn)?] {
        let call = stage.show(&call.to_string()).await?;
        ensure!(call.outcomes() == ["succeeded"], "attempts ended as {:?}", call.outcomes());
    }
    let last = stage.show(&task.turn_call(turn)?.to_string()).await?;
    ensure!(last.attempts_made[0].started_at > killed_at, "turn {turn} began before the second kill");
    Ok(())
}
