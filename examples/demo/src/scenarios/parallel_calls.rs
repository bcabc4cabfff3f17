//! Three calls in one reply: one fails permanently, one needs two retries, one is fast. The model gets all three
//! results in one turn, in the order of its calls.

use anyhow::ensure;
use redial_proto::{ErrorClass, Role, TaskDecision};

use crate::{dates::Dates, stack::Stack, task::Task};

pub(super) const AGENT: &str = "planner";
const TOOLS: [&str; 3] = ["reserve_room", "train_times", "weekday"];

pub(super) async fn run(stack: &Stack) -> anyhow::Result<String> {
    let task = stack.run_task(AGENT, &input(&stack.dates)).await?;
    task.expect(2, 3, 0)?;
    let answers = task.messages_of(Role::Tool);
    let tools: Vec<&str> = answers.iter().filter_map(|message| message.tool.as_deref()).collect();
    ensure!(tools == TOOLS, "the results came as {tools:?}");
    let classes: Vec<_> = answers.iter().map(|message| message.class).collect();
    ensure!(classes == [Some(ErrorClass::BusinessRule), None, None], "they ended as {classes:?}");
    let mut outcomes = Vec::new();
    for call_index in 1..=3 {
        let call = stack.show_call(&task.tool_call(1, call_index)?.to_string()).await?;
        outcomes.push(call.outcomes().join(", "));
    }
    let wanted = ["business_rule", "unavailable, unavailable, succeeded", "succeeded"];
    ensure!(outcomes == wanted, "the attempts ended as {outcomes:?}");
    let order = answer_order(&task);
    ensure!(order.last() == Some(&2), "the calls were answered in the order {order:?}");
    let order: Vec<String> = order.iter().map(u32::to_string).collect();
    Ok(format!(
        "{}: business_rule; {}: {}; {}: ok; finished in the order {}, in the conversation in the order 1 2 3; 2 turns",
        TOOLS[0],
        TOOLS[1],
        outcomes[1],
        TOOLS[2],
        order.join(" ")
    ))
}

/// What the user asks.
pub(super) fn input(dates: &Dates) -> String {
    format!(
        "I want to go to Chengdu on {}: reserve a room, find a train, and tell me what day of the week that is.",
        dates.later
    )
}

/// The call indexes in the order in which the calls ended.
fn answer_order(task: &Task) -> Vec<u32> {
    let call_index = |decision: &TaskDecision| {
        if let TaskDecision::Answered { call_index, .. } = decision { Some(*call_index) } else { None }
    };
    task.decisions().filter_map(call_index).collect()
}
