//! Users read the recorded decisions, and they are replayed: they must match what each step does.

use redial_engine::task::Step;
use redial_proto::{Role, TaskDecision};

use super::record::{Verdict, must};

/// Compares the decisions of a step with what it does.
pub(crate) fn check(step: &Step) -> Verdict {
    let (mut seqs, mut answered, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut turns, mut ends) = (Vec::new(), Vec::new());
    for decision in &step.decisions {
        match decision {
            TaskDecision::Message { seq } => seqs.push(*seq),
            TaskDecision::Answered { id, class, .. } => answered.push((Some(id), *class)),
            TaskDecision::Run { turn, call_index, tool, .. } => runs.push((*turn, *call_index, tool)),
            TaskDecision::Turn { turn, model, last, continues } => {
                turns.push((*turn, model.clone(), !last && !continues));
            }
            TaskDecision::Ended { state, code, .. } => ends.push((*state, *code)),
            _ => {}
        }
    }
    let written: Vec<_> = step.messages.iter().map(|(seq, _)| *seq).collect();
    must(seqs == written, || format!("recorded messages {seqs:?}, wrote {written:?}"))?;
    let tools = step.messages.iter().filter(|(_, message)| message.role == Role::Tool);
    let tools: Vec<_> = tools.map(|(_, message)| (message.call_id.as_ref(), message.class)).collect();
    must(answered == tools, || format!("recorded answers {answered:?}, wrote {tools:?}"))?;
    let started = step.calls.iter().filter(|call| call.refusal.is_none());
    let started: Vec<_> = started.map(|call| (call.turn, call.call_index, &call.tool)).collect();
    must(runs == started, || format!("recorded runs {runs:?}, wrote {started:?}"))?;
    let asked = step.turn.iter().map(|asked| (asked.turn, asked.model.clone(), asked.tools));
    must(turns.iter().cloned().eq(asked), || format!("recorded turns {turns:?}, asks {:?}", step.turn))?;
    let end = step.ended.iter().map(|end| (end.state, end.code));
    must(ends.iter().copied().eq(end), || format!("recorded ends {ends:?}, but {:?}", step.ended))
}
