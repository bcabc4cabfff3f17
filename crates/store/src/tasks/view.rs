//! A task as users see it.

use redial_proto::{TaskCode, TaskId, TaskState, TaskView, Usage};
use uuid::Uuid;

use crate::{Time, uint};

/// What every query of this shape returns.
pub(crate) struct RawView {
    pub(crate) id: Uuid,
    pub(crate) tenant: String,
    pub(crate) conversation: String,
    pub(crate) agent: Option<String>,
    pub(crate) model: String,
    pub(crate) input: String,
    pub(crate) state: String,
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) answer: Option<String>,
    pub(crate) turns: i32,
    pub(crate) tool_calls: i32,
    pub(crate) corrections: i32,
    pub(crate) input_tokens: i64,
    pub(crate) output_tokens: i64,
    pub(crate) cost_micros: i64,
    pub(crate) estimated_input_tokens: i64,
    pub(crate) estimated_output_tokens: i64,
    pub(crate) estimated_cost_micros: i64,
    pub(crate) turns_without_price: i32,
    pub(crate) submitted_at: Time,
    pub(crate) submitted_by: Option<String>,
    pub(crate) started_at: Option<Time>,
    pub(crate) finished_at: Option<Time>,
    pub(crate) metadata: Option<String>,
}

impl From<RawView> for TaskView {
    fn from(raw: RawView) -> Self {
        let cost_micros = cost(&raw);
        Self {
            task: TaskId(raw.id),
            conversation: raw.conversation,
            agent: raw.agent,
            model: raw.model,
            input: raw.input,
            state: TaskState::shown(&raw.state),
            code: raw.code.as_deref().map(TaskCode::shown),
            message: raw.message,
            answer: raw.answer,
            turns: uint(raw.turns),
            tool_calls: uint(raw.tool_calls),
            corrections: uint(raw.corrections),
            usage: Usage {
                input_tokens: number(raw.input_tokens),
                output_tokens: number(raw.output_tokens),
                cost_micros,
                estimated_input_tokens: number(raw.estimated_input_tokens),
                estimated_output_tokens: number(raw.estimated_output_tokens),
                estimated_cost_micros: number(raw.estimated_cost_micros),
                turns_without_price: uint(raw.turns_without_price),
            },
            metadata: raw.metadata.as_deref().and_then(|notes| serde_json::from_str(notes).ok()).unwrap_or_default(),
            submitted_at: raw.submitted_at,
            submitted_by: raw.submitted_by,
            started_at: raw.started_at,
            finished_at: raw.finished_at,
        }
    }
}

fn number(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// Returns the cost; zero is a price only if every turn has one.
fn cost(raw: &RawView) -> Option<u64> {
    let is_known = raw.cost_micros > 0 || (raw.turns > 0 && raw.turns_without_price == 0);
    is_known.then(|| number(raw.cost_micros))
}
