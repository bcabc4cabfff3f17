//! A model that only writes text: it calls a tool that does not exist, then the right one with keys in camel case, then
//! it invents what a tool says, then it answers.

use anyhow::{bail, ensure};
use redial_proto::{ErrorClass, RepairKind, Role, TaskDecision};

use crate::{stage::Stage, task::Task};

/// What the scripted model invents as the tool's answer.
const INVENTED: &str = "sunny";

pub(super) async fn play(stage: &Stage) -> anyhow::Result<String> {
    let input =
        format!("Find me a flight from Shanghai to Chengdu on {}, and tell me the weather there.", stage.dates.later);
    let task = stage.task("scout", &input).await?;
    if !stage.is_scripted() {
        return Ok(task.told());
    }
    task.expect(4, 2, 1)?;
    let feedback = task.feedback()?;
    let [unknown] = feedback.as_slice() else { bail!("the feedback is {feedback:?}") };
    ensure!(unknown.class == ErrorClass::UnknownTool, "the class is {}", unknown.class);
    ensure!(unknown.message.contains("search_flights"), "no help in {:?}", unknown.message);
    let keys: Vec<String> = task
        .repairs()
        .into_iter()
        .filter(|repair| repair.kind == RepairKind::KeyName)
        .map(|repair| format!("{} → {}", repair.before, repair.after))
        .collect();
    ensure!(keys.len() == 3, "the repairs are {:?}", task.repairs());
    cut_off(&task)?;
    Ok(format!(
        "find_flights is unknown, told of search_flights; {} and 2 more keys repaired without a turn; an invented \
         Observation cut off; answered after {} turns: {:?}",
        keys[0],
        task.view.turns,
        task.answer()
    ))
}

/// The weather comes from the tool, and nothing that the model invented is in the conversation.
fn cut_off(task: &Task) -> anyhow::Result<()> {
    let weather = task.results("get_weather")?;
    ensure!(weather.len() == 1 && weather[0]["celsius"] == 14, "the weather is {weather:?}");
    let invented = |message: &&redial_proto::Message| message.content.contains(INVENTED);
    let left = task.by(Role::Assistant).into_iter().find(invented);
    ensure!(left.is_none(), "what the model invented is still there: {left:?}");
    let runs = task.decisions().filter(|decision| matches!(decision, TaskDecision::Run { .. })).count();
    ensure!(runs == 2, "{runs} calls ran");
    Ok(())
}
