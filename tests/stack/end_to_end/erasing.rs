//! Erasing calls while workers, reports and the database get in the way.

use redial_proto::{
    CallId, ErrorClass, Failure, Forget, ForgetReply, Submission, SubmitResult, ToolSpec, subjects::Verb,
};
use redial_queue::{Queue, QueueError};
use redial_test_stack::{Stack, arguments, until};
use serde_json::json;
use uuid::Uuid;

use super::{by_hand::Hand, fixture::ANSWER};

/// A request to erase a conversation, or all of the tenant.
pub(crate) fn of(conversation: Option<&str>) -> Forget {
    let conversation = conversation.map(str::to_owned);
    Forget { conversation, erasure: Some(Uuid::now_v7()), ..Forget::default() }
}

async fn ask(user: &Queue, request: &Forget) -> Result<ForgetReply, QueueError> {
    let verb = if request.conversation.is_some() { Verb::ConversationForget } else { Verb::TenantForget };
    user.ask(verb, request, ANSWER).await
}

/// Sends the request until it is done, whatever is in the way.
pub(crate) async fn forget(user: &Queue, request: &Forget) -> ForgetReply {
    until("it is erased", async || ask(user, request).await.ok().filter(|reply| reply.done)).await
}

/// Submits a call of which the checker does not learn: it will not be on record.
async fn submit(stack: &Stack, conversation: &str) -> CallId {
    let mut submission = Submission::new("read", arguments(json!({"secret": 1})));
    submission.conversation = Some(conversation.to_owned());
    let result: SubmitResult = stack.queue().ask(Verb::CallSubmit, &submission, ANSWER).await.unwrap();
    result.call.unwrap_or_else(|| panic!("{result:?}"))
}

#[tokio::test]
async fn a_running_call_is_erased_once_it_may_be_cancelled_and_its_report_leaves_nothing() {
    let stack = Stack::start().await;
    let mut worker = Hand::new(&stack, vec![ToolSpec::named("read")]).await;
    let running = submit(&stack, "c").await;
    assert_eq!(worker.granted().await.call, running);
    let waiting = submit(&stack, "c").await;
    let request = of(Some("c"));
    let refused = ask(stack.queue(), &request).await.unwrap_err().to_string();
    assert!(refused.contains("has work that has not ended") && refused.contains("wrong_state"), "{refused}");
    assert_eq!((stack.count("calls").await, stack.count("tombstones").await), (2, 0));

    // Its worker says nothing, so the lease has to end.
    let erased = forget(stack.queue(), &Forget { cancel: true, ..request.clone() }).await;
    assert_eq!((erased.counts.calls, erased.counts.attempts), (2, 1));
    worker.report(running, 1, Ok(r#""secret""#)).await;
    worker.report(running, 1, Err(Failure::new(ErrorClass::ToolFailed, "secret"))).await;
    worker.report(waiting, 1, Ok(r#""secret""#)).await;
    for table in ["calls", "attempts", "late_reports", "task_inbox", "dead_letters"] {
        assert_eq!(stack.count(table).await, 0, "{table}");
    }
    assert!(worker.claim(waiting, 1).await.is_empty(), "its job is worth nothing");
    stack.redrive(running).await.error.expect("there is no such call");
    assert_eq!(forget(stack.queue(), &request).await.counts, erased.counts);
    let job = worker.job().await;
    assert_eq!(job.call, waiting, "it was still on the stream");
    stack.finish().await;
}

#[tokio::test]
async fn a_request_says_what_is_wrong_with_it() {
    let stack = Stack::start().await;
    let acme = stack.user("acme", "ann").await;
    let no_id = Forget { erasure: None, ..of(None) };
    let odd = of(Some("\u{7}"));
    for (verb, request, part) in [
        (Verb::TenantForget, no_id, "erasure is missing; allowed: "),
        (Verb::ConversationForget, odd, "allowed: "),
        // The verb says which of both is meant, so that a field that was left out does not erase everything.
        (Verb::ConversationForget, of(None), "conversation is missing"),
        (Verb::TenantForget, of(Some("c")), "a conversation is named"),
    ] {
        let error = acme.ask::<_, ForgetReply>(verb, &request, ANSWER).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    stack.finish().await;
}

/// Ids of erasures are no secret, and who knows one must not change what it does.
#[tokio::test]
async fn another_tenant_does_not_change_an_erasure_and_who_makes_it_cancel_is_on_record() {
    let stack = Stack::start().await;
    let (ann, bob) = (stack.user("acme", "ann").await, stack.user("acme", "bob").await);
    let other = stack.user("other", "eve").await;
    let request = of(Some("c"));
    ask(&ann, &Forget { dry_run: true, ..of(Some("c")) }).await.unwrap();
    assert_eq!(stack.count("actions").await, 0, "counting changes nothing");
    let begun = format!(
        "INSERT INTO tombstones (id, tenant, conversation, actor, cancels, next_at)
         VALUES ('{}', 'acme', 'c', 'ann', false, now() + interval '1 h')",
        request.erasure.unwrap()
    );
    stack.execute(&begun).await;
    let cancelling = Forget { cancel: true, ..request.clone() };
    for (user, wrong) in [(&other, cancelling.clone()), (&ann, Forget { conversation: None, ..cancelling.clone() })] {
        let error = ask(user, &wrong).await.unwrap_err().to_string();
        assert!(error.contains("is of something else"), "{error}");
    }
    assert_eq!(stack.count("tombstones WHERE cancels OR until_at IS NOT NULL").await, 0);
    forget(&bob, &cancelling).await;
    forget(&bob, &cancelling).await;
    assert_eq!(stack.count("tombstones WHERE cancels").await, 1);
    let acted: Vec<String> = stack.values("SELECT user_name || ' ' || result FROM actions ORDER BY id").await;
    assert_eq!(acted, ["bob done"]);
    stack.finish().await;
}
