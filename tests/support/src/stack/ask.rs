//! What a client asks, over NATS as any client does; every promise that is made is remembered for the checker.

use std::time::Duration;

use chrono::Utc;
use redial_proto::{
    CallId, CallState, CallView, CancelReply, CancelRequest, Door, GetRequest, RedriveReply, RedriveRequest,
    Submission, SubmitBatch, SubmitBatchReply, SubmitResult, SubmitStatus, TaskCancel, TaskCancelReply, TaskGet,
    TaskId, TaskReport, TaskResult, TaskState, TaskSubmission, UserRole,
    subjects::{self, Intake, Verb},
};
use redial_queue::QueueError;
use serde_json::Value;

use super::Stack;

/// Recovery from a crash of all servers is part of it.
const ANSWER: Duration = Duration::from_mins(1);

impl Stack {
    /// Returns the subject of a request of the usual user, in the role that may ask for it.
    pub fn subject(&self, verb: Verb) -> String {
        subjects::api(Door::Nats, self.queue().tenant(), self.queue().user(), verb.roles()[0], verb)
    }

    /// Returns the subject of the intake stream of the usual user, who may bring agents along.
    pub fn intake(&self, what: Intake) -> String {
        let role = match what {
            Intake::Calls => UserRole::Submit,
            Intake::Tasks => UserRole::Inline,
        };
        subjects::intake(self.queue().tenant(), self.queue().user(), role, what)
    }

    pub async fn submit(&self, submission: &Submission) -> SubmitResult {
        let result: SubmitResult = self.queue().ask(Verb::CallSubmit, submission, ANSWER).await.unwrap();
        self.remember(submission, &result);
        result
    }

    /// Submits a call that must be accepted.
    pub async fn call(&self, tool: &str, value: Value) -> CallId {
        self.accepted(&Submission::new(tool, redial_testkit::arguments(value))).await
    }

    /// Submits a call that must be accepted.
    pub async fn accepted(&self, submission: &Submission) -> CallId {
        let result = self.submit(submission).await;
        assert_eq!(result.status, SubmitStatus::Accepted, "{:?}", result.error);
        result.call.unwrap()
    }

    /// Submits many calls; after an error it is unknown whether they were accepted.
    pub async fn try_submit_all(&self, submissions: &[Submission]) -> Result<Vec<SubmitResult>, QueueError> {
        let calls = submissions.iter().map(|one| serde_json::value::to_raw_value(one).unwrap()).collect();
        let batch = SubmitBatch { calls };
        let reply: SubmitBatchReply = self.queue().ask(Verb::CallSubmit, &batch, ANSWER).await?;
        for (submission, result) in submissions.iter().zip(&reply.results) {
            self.remember(submission, result);
        }
        Ok(reply.results)
    }

    /// Submits many calls that must be accepted.
    pub async fn call_all(&self, submissions: &[Submission]) -> Vec<CallId> {
        let results = self.try_submit_all(submissions).await.unwrap();
        let accepted = |result: SubmitResult| {
            assert_eq!(result.status, SubmitStatus::Accepted, "{:?}", result.error);
            result.call.unwrap()
        };
        results.into_iter().map(accepted).collect()
    }

    /// Puts a call on the intake stream, under a key: no client learns its id.
    pub async fn submit_to_intake(&self, submission: &Submission) {
        self.queue().put(&self.intake(Intake::Calls), submission).await.unwrap();
        self.claims().intake_keys.push(submission.key.clone().expect("a key, by which it can be found again"));
    }

    pub async fn get(&self, call: CallId) -> CallView {
        self.queue()
            .ask(Verb::CallGet, &GetRequest { call, language: redial_proto::Language::default() }, ANSWER)
            .await
            .unwrap()
    }

    /// Waits until a call has ended.
    pub async fn ended(&self, call: CallId) -> CallView {
        self.wait_for_end(call).await;
        self.get(call).await
    }

    /// Waits until a call has ended with success; returns its output.
    pub async fn output(&self, call: CallId) -> String {
        let view = self.ended(call).await;
        assert_eq!(view.state, CallState::Succeeded, "{view:?}");
        view.output.unwrap().get().to_owned()
    }

    /// Waits until a call is in a state.
    pub async fn is(&self, call: CallId, state: CallState) {
        redial_testkit::until(&format!("call {call} is {state}"), async || {
            let now = sqlx::query_scalar::<_, String>("SELECT state FROM calls WHERE id = $1").bind(call.0);
            (now.fetch_one(self.db()).await.ok()? == state.as_str()).then_some(())
        })
        .await;
    }

    /// Cancels a call; returns where it stands then.
    pub async fn cancel(&self, call: CallId) -> CallState {
        let request = CancelRequest { call };
        let reply: CancelReply = self.queue().ask(Verb::CallCancel, &request, ANSWER).await.unwrap();
        if matches!(reply.state, CallState::Cancelled | CallState::Running) {
            self.claims().cancelled.push((call, Utc::now()));
        }
        reply.state
    }

    /// Runs an ended call again.
    pub async fn redrive(&self, call: CallId) -> SubmitResult {
        let request = RedriveRequest::unchanged(vec![call]);
        let mut reply: RedriveReply = self.queue().ask(Verb::CallRedrive, &request, ANSWER).await.unwrap();
        let result = reply.results.remove(0);
        if let (SubmitStatus::Accepted | SubmitStatus::Existing, Some(call)) = (result.status, result.call) {
            self.claims().acknowledged.push((call, None));
        }
        result
    }

    pub async fn submit_task(&self, submission: &TaskSubmission) -> TaskResult {
        let result: TaskResult =
            self.queue().ask_as(submission.role(), Verb::TaskSubmit, submission, ANSWER).await.unwrap();
        self.claims().tasks.extend(result.task);
        result
    }

    /// Submits a task that must be accepted.
    pub async fn task(&self, submission: &TaskSubmission) -> TaskId {
        let result = self.submit_task(submission).await;
        assert_eq!(result.status, SubmitStatus::Accepted, "{:?}", result.error);
        result.task.unwrap()
    }

    /// Returns a task with all its steps and messages.
    pub async fn task_report(&self, task: TaskId) -> TaskReport {
        let report: TaskReport =
            self.queue().ask(Verb::TaskGet, &TaskGet { task, after_step: 0 }, ANSWER).await.unwrap();
        assert!(!report.more, "the task is too long for one message");
        report
    }

    /// Waits until a task has ended.
    pub async fn task_ended(&self, task: TaskId) -> TaskReport {
        self.task_is(task, TaskState::is_terminal).await;
        self.task_report(task).await
    }

    /// Waits until a task's state is as wanted.
    pub async fn task_is(&self, task: TaskId, wanted: impl Fn(TaskState) -> bool) {
        redial_testkit::until(&format!("task {task} gets there"), async || {
            let now = sqlx::query_scalar::<_, String>("SELECT state FROM tasks WHERE id = $1").bind(task.0);
            let now: TaskState = now.fetch_one(self.db()).await.ok()?.parse().ok()?;
            wanted(now).then_some(())
        })
        .await;
    }

    /// Cancels a task; returns where it stands then.
    pub async fn cancel_task(&self, task: TaskId) -> TaskState {
        let reply: TaskCancelReply = self.queue().ask(Verb::TaskCancel, &TaskCancel { task }, ANSWER).await.unwrap();
        reply.state
    }

    fn remember(&self, submission: &Submission, result: &SubmitResult) {
        if let (SubmitStatus::Accepted | SubmitStatus::Existing, Some(call)) = (result.status, result.call) {
            self.claims().acknowledged.push((call, submission.key.clone()));
        }
    }
}
