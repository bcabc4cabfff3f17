//! What is being erased takes nothing new, and says so at once.

use redial_test_stack::{Stack, file};
use serde_json::json;

use super::{
    client::Http,
    model::{model, says},
};

#[tokio::test]
async fn a_conversation_that_is_being_erased_refuses_tasks_at_once_and_says_when_to_try_again() {
    let agents = file("agents", "[agents.guide]\nmodel = \"small\"\nsystem = \"Help.\"\n");
    let mut stack = Stack::start_with(|stack| stack.dispatcher.agents = Some(agents)).await;
    stack.play_models(vec![model("small", [says("Done.")])]).await;
    let http = Http::open(&stack).await;
    // Nobody works on it for an hour: whoever waits for its end gets no answer.
    let erases = |conversation: &str| {
        format!(
            "INSERT INTO tombstones (id, tenant, conversation, actor, cancels, until_at, next_at)
             VALUES (gen_random_uuid(), 'default', {conversation}, 'ann', true, now(), now() + interval '1 h')"
        )
    };
    stack.execute(&erases("'talk-1'")).await;
    let task = json!({"input": "Go on.", "agent": "guide", "conversation": "talk-1", "key": "k"});
    let answer = http.post_with("/v1/tasks", &task, &[("prefer", "wait=60")]).await;
    let detail = answer.problem(409, "being_erased");
    assert!(
        detail.starts_with("conversation \"talk-1\" is being erased") && detail.ends_with("try again in 5 s"),
        "{detail}"
    );
    assert_eq!(answer.headers["retry-after"], "5");
    for streams in [false, true] {
        let body = json!({"model": "guide", "input": "Go on.", "conversation": "talk-1", "stream": streams});
        let answer = http.post("/v1/responses", &body).await;
        assert_eq!((answer.status, &answer.body["error"]["code"]), (409, &"being_erased".into()), "{}", answer.text);
        assert_eq!(answer.headers["retry-after"], "5");
    }
    assert_eq!(stack.count("tasks").await, 0);
    http.ended("/v1/tasks", &json!({"input": "Go on.", "agent": "guide", "conversation": "talk-2"})).await;

    // The same of a tenant: the message names what is erased.
    stack.execute(&erases("NULL")).await;
    let anywhere = json!({"input": "Go on.", "agent": "guide"});
    let detail = http.post("/v1/tasks", &anywhere).await.problem(409, "being_erased");
    assert!(detail.starts_with("everything of tenant \"default\" is being erased"), "{detail}");
    // Once it is over, the same request goes through.
    stack.execute("DELETE FROM tombstones").await;
    http.ended("/v1/tasks", &task).await;
    stack.finish().await;
}
