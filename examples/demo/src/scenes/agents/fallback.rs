//! A small model fails; a better one takes over and never sees the failed call; then the small one goes on. The record
//! keeps all of it.

use anyhow::{Context, bail, ensure};
use redial_proto::{ErrorClass, TaskDecision, TurnRequest};

use crate::{stage::Stage, task::Task};

pub(super) async fn play(stage: &Stage) -> anyhow::Result<String> {
    let task = stage.task("poet", "Write a haiku about an old pine in the evening.").await?;
    if !stage.is_scripted() {
        return Ok(task.told());
    }
    task.expect(3, 1, 0)?;
    let models: Vec<&str> = task.decisions().filter_map(asked).collect();
    ensure!(models == ["small-poet", "great-poet", "small-poet"], "the turns went to {models:?}");
    let pruned = pruned(&task)?;
    let kept = task.messages.iter().find(|stored| stored.message.calls.iter().any(|call| call.id == pruned));
    let kept = kept.with_context(|| format!("{pruned} is on record no more"))?;
    let feedback = task.feedback()?;
    let [failed] = feedback.as_slice() else { bail!("the feedback is {feedback:?}") };
    ensure!(failed.class == ErrorClass::InvalidArguments && failed.paths() == ["/topic"], "it failed with {failed:?}");

    for turn in [2, 3] {
        let view: TurnRequest = stage.show(&task.turn_call(turn)?.to_string()).await?.arguments()?;
        let seen = serde_json::to_string(&view.messages)?;
        ensure!(!seen.contains(&format!("{pruned:?}")), "turn {turn} still sees {pruned}: {seen}");
        ensure!(!seen.contains(ErrorClass::InvalidArguments.as_str()), "turn {turn} still sees the error: {seen}");
    }
    let haiku = task.results("master_haiku_generator")?;
    ensure!(haiku.len() == 1, "the results are {haiku:?}");
    Ok(format!(
        "small-poet sent {} for 3 topics; great-poet, who was shown no failed call, sent 3; small-poet answered; \
         the failed call is still on record",
        kept.message.calls[0].arguments
    ))
}

fn asked(decision: &TaskDecision) -> Option<&str> {
    if let TaskDecision::Turn { model, .. } = decision { Some(model) } else { None }
}

/// The id of the one call that was taken out of sight.
fn pruned(task: &Task) -> anyhow::Result<String> {
    let pruned = task.decisions().find_map(|decision| match decision {
        TaskDecision::Fallback { pruned, .. } => Some(pruned.as_slice()),
        _ => None,
    });
    match pruned {
        Some([id]) => Ok(id.clone()),
        other => bail!("calls taken out of sight: {other:?}"),
    }
}
