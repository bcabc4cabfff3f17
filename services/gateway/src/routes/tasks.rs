//! `/v1/tasks`.

mod cancel;
mod events;
mod get;
mod list;
mod submit;

use redial_proto::{TaskCancelReply, TaskReport, TaskResult, TaskSubmission, TaskView, UserRole};

use crate::{
    endpoint::{Endpoint, IDEMPOTENCY_KEY, LAST_EVENT_ID, PREFER},
    events::{After, MEDIA, ServerSentEvent},
};

const TAG: &str = "tasks";
const READ: &[UserRole] = &[UserRole::Read];

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
            .answer::<list::TaskList>(200, "Tasks that match."),
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
