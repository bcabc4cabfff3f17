//! A small model sends a wrong call. A stronger model takes over and does not see that call; then the small one
//! continues. The record keeps everything.

use anyhow::{Context, bail, ensure};
use redial_proto::{ErrorClass, TaskDecision, TurnRequest};

use crate::{stack::Stack, task::Task};

pub(super) const AGENT: &str = "poet";
pub(super) const INPUT: &str = "Write a haiku about an old pine in the evening.";

pub(super) async fn run(stack: &Stack) -> anyhow::Result<String> {
    let task = stack.run_task(AGENT, INPUT).await?;
    task.expect(3, 1, 0)?;
    let models: Vec<&str> = task.decisions().filter_map(asked_model).collect();
    ensure!(models == ["small-poet", "great-poet", "small-poet"], "the turns went to {models:?}");
    let pruned = pruned_call(&task)?;
    let kept = task.messages.iter().find(|stored| stored.message.calls.iter().any(|call| call.id == pruned));
    let kept = kept.with_context(|| format!("{pruned} is not on record"))?;
    let feedback = task.feedback()?;
    let [failed] = feedback.as_slice() else { bail!("the feedback is {feedback:?}") };
    ensure!(failed.class == ErrorClass::InvalidArguments && failed.paths() == ["/topic"], "it failed with {failed:?}");

    for turn in [2, 3] {
        let view: TurnRequest = stack.show_call(&task.turn_call(turn)?.to_string()).await?.arguments()?;
        let seen = serde_json::to_string(&view.messages)?;
        ensure!(!seen.contains(&format!("{pruned:?}")), "turn {turn} still sees {pruned}: {seen}");
        ensure!(!seen.contains(ErrorClass::InvalidArguments.as_str()), "turn {turn} still sees the error: {seen}");
    }
    let haiku = task.results("master_haiku_generator")?;
    ensure!(haiku.len() == 1, "the results are {haiku:?}");
    Ok(format!(
        "small-poet sent {} for 3 topics; great-poet, which was not shown the failed call, sent 3; small-poet answered; \
         the failed call is on record",
        kept.message.calls[0].arguments
    ))
}

fn asked_model(decision: &TaskDecision) -> Option<&str> {
    if let TaskDecision::Turn { model, .. } = decision { Some(model) } else { None }
}

/// The id of the only call that was pruned from the models' view.
fn pruned_call(task: &Task) -> anyhow::Result<String> {
    let pruned = task.decisions().find_map(|decision| match decision {
        TaskDecision::Fallback { pruned, .. } => Some(pruned.as_slice()),
        _ => None,
    });
    match pruned {
        Some([id]) => Ok(id.clone()),
        other => bail!("the pruned calls are {other:?}"),
    }
}
