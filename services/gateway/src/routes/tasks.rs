//! `/v1/tasks`.

mod calls;
mod cancel;
mod events;
mod get;
mod list;
mod replay;
mod spec;
mod submit;
mod turn;

use redial_api::{Replay, TaskCallList, TaskList, TaskSpec, TurnView};
use redial_proto::{TaskCancelReply, TaskReport, TaskResult, TaskSubmission, TaskView, UserRole};

use crate::{
    endpoint::{Endpoint, IDEMPOTENCY_KEY, LAST_EVENT_ID, PREFER},
    events::{After, MEDIA, ServerSentEvent},
};

const TAG: &str = "tasks";
const READ: &[UserRole] = &[UserRole::Read];

#[expect(clippy::too_many_lines, reason = "a list, as it is read in the document")]
pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/v1/tasks", submit::submit)
            .about(TAG, "submit_task", "Submit a task: a request that a model works on with tools")
            .roles(&[UserRole::Submit, UserRole::Inline])
            .header(PREFER)
            .header(IDEMPOTENCY_KEY)
            .body::<TaskSubmission>()
            .answer::<TaskView>(200, "With `Prefer: wait`: the task has ended.")
            .answer::<TaskResult>(202, "Accepted: `Location` is the task."),
        Endpoint::get("/v1/tasks", list::list)
            .about(TAG, "list_tasks", "List tasks, newest first")
            .roles(READ)
            .query::<list::TasksQuery>()
            .answer::<TaskList>(200, "Tasks that match."),
        Endpoint::post("/v1/tasks/{id}/cancel", cancel::cancel)
            .about(TAG, "cancel_task", "Stop a task and everything that it runs")
            .description("What has ended stays as it is.")
            .roles(&[UserRole::Submit])
            .answer::<TaskCancelReply>(200, "The state of the task now; the cancel is on record."),
        Endpoint::get("/v1/tasks/{id}", get::get)
            .about(TAG, "get_task", "A task")
            .roles(READ)
            .header(PREFER)
            .answer::<TaskView>(200, "The task. With `Prefer: wait`: it has ended.")
            .answer::<TaskView>(202, "With `Prefer: wait`: it has not ended yet."),
        Endpoint::get("/v1/tasks/{id}/steps", get::steps)
            .about(TAG, "get_task_steps", "What happened in a task, and the messages that were written")
            .roles(READ)
            .query::<get::StepsQuery>()
            .answer::<TaskReport>(200, "The task, and its steps."),
        Endpoint::get("/v1/tasks/{id}/calls", calls::calls)
            .about(TAG, "list_task_calls", "The calls of a task with their attempts, as a timeline shows them")
            .roles(READ)
            .query::<calls::TaskCallsQuery>()
            .answer::<TaskCallList>(200, "Calls, by turn and number."),
        Endpoint::get("/v1/tasks/{id}/spec", spec::spec)
            .about(TAG, "get_task_spec", "The agent of a task, as it was when the task was submitted")
            .roles(READ)
            .answer::<TaskSpec>(200, "The agent."),
        Endpoint::get("/v1/tasks/{id}/turns/{turn}", turn::turn)
            .about(TAG, "get_task_turn", "What a model saw in a turn, and what it answered")
            .roles(READ)
            .answer::<TurnView>(200, "The turn."),
        Endpoint::get("/v1/tasks/{id}/replay", replay::replay)
            .about(TAG, "replay_task", "Decide a recorded task again, and say what differs")
            .description("What is on record goes through the same planner as when it happened. Nothing runs, and nothing changes.")
            .roles(READ)
            .answer::<Replay>(200, "What differs; nothing, if the task would go the same way again."),
        Endpoint::get("/v1/tasks/{id}/record", replay::record)
            .about(TAG, "get_task_record", "Everything on record about a task")
            .description("The same as `redial show TASK --json`: a regression test for `redial replay --file`. At most 32 MiB.")
            .roles(READ)
            .answer::<serde_json::Value>(200, "The record."),
        Endpoint::get("/v1/tasks/{id}/events", events::events)
            .about(TAG, "follow_task", "The events of a task as they happen")
            .description(
                "Server-sent events: what happened and what was decided, with ids to go on after, and each `message`; what the \
                 model writes as `text` and `delta`, without ids; `end` with the task, then nothing.",
            )
            .roles(READ)
            .query::<After>()
            .header(LAST_EVENT_ID)
            .answer_as::<ServerSentEvent>(200, "The events.", MEDIA)
            .empty_answer(204, "You have its end."),
    ]
}
