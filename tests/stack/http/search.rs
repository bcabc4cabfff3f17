//! Searches over HTTP: every filter finds what it says, alone and with others, and an answer says how far it looked.

use redial_proto::{ToolEffect, UserRole};
use redial_test_stack::{Stack, file, scripted_tool};
use serde_json::{Value, json};

use super::{
    client::Http,
    model::{model, says},
};

/// A stack with agents `clerk` and `guide`, tools of two effects, and what alice and bob have submitted: two tasks of `clerk` and
/// one of `guide`; three calls that succeeded and two that failed.
async fn stack() -> (Stack, Http) {
    let agents = file("agents", "[agents.clerk]\nmodel = \"small\"\n[agents.guide]\nmodel = \"large\"\n");
    let mut stack = Stack::start_with(|stack| stack.dispatcher.agents = Some(agents)).await;
    stack.play_models(["small", "large"].map(|name| model(name, [says("Hello.")])).to_vec()).await;
    let tools = [("look", ToolEffect::Read), ("book", ToolEffect::Unsafe)];
    stack.work(tools.map(|(name, effect)| scripted_tool(name, effect, &stack.ledger)).to_vec()).await;
    let open = Http::wanting_tokens(&stack).await;
    let user = async |name: &str| open.of_user(&stack.user("acme", name).await, &UserRole::ALL).await;
    let (alice, bob) = (user("alice").await, user("bob").await);
    for (who, agent, input) in [(&alice, "clerk", "a room"), (&bob, "clerk", "a flight"), (&alice, "guide", "a room")] {
        let task = json!({"input": format!("Find {input}."), "agent": agent});
        let view = who.ended("/v1/tasks", &task).await;
        assert_eq!(view["state"], "succeeded", "{view}");
    }
    for (n, (who, tool, fails)) in [
        (&alice, "look", None),
        (&bob, "look", None),
        (&bob, "book", None),
        (&alice, "look", Some("auth")),
        (&bob, "book", Some("business_rule")),
    ]
    .into_iter()
    .enumerate()
    {
        let city = if n == 2 { "Paris" } else { "Rome" };
        let arguments = json!({"fail": fails, "n": n, "output": json!({"at": city}).to_string()});
        let conversation = format!("c{}", n % 2);
        let body = json!({"tool": tool, "arguments": arguments, "key": format!("k{n}"), "conversation": conversation});
        who.ended("/v1/calls", &body).await;
    }
    (stack, alice)
}

/// How many entries a list has, over all pages of two.
async fn count(http: &Http, list: &str, query: &str) -> usize {
    let (mut count, mut token) = (0, String::new());
    loop {
        let page = http.get(&format!("/v1/{list}?{query}&page_size=2&page_token={token}")).await.must(200);
        count += page[list].as_array().unwrap().len();
        page["next_page_token"].as_str().unwrap().clone_into(&mut token);
        assert_eq!(page["searched"]["complete"], token.is_empty(), "{query}: {page}");
        if token.is_empty() {
            return count;
        }
    }
}

#[tokio::test]
async fn filters_find_what_they_say() {
    let (stack, http) = stack().await;
    calls_are_found_by_what_they_are_and_by_what_they_are_not(&http).await;
    tasks_are_found_by_what_they_are_and_by_what_they_are_not(&http).await;
    an_export_has_what_the_list_has_and_says_whether_that_is_all(&http).await;
    stack.finish().await;
}

async fn calls_are_found_by_what_they_are_and_by_what_they_are_not(http: &Http) {
    let failed = http.get("/v1/calls?state=failed").await.must(200);
    let worker = failed["calls"][0]["last_worker"].as_str().unwrap().to_owned();
    let of_worker = format!("worker={worker}&class=auth");
    let not_of_worker = format!("not_worker={worker}&state=failed");
    for (query, wanted) in [
        ("", 8),
        ("agent=clerk", 2),
        ("agent=nobody", 0),
        ("not_agent=clerk", 6),
        ("not_agent=clerk&not_agent=guide", 5),
        ("agent=clerk&not_agent=clerk", 0),
        ("model=small", 2),
        ("not_model=small", 6),
        ("not_model=small&not_tool=look", 3),
        ("effect=unsafe", 2),
        ("effect=unsafe&state=failed", 1),
        ("not_effect=unsafe", 6),
        ("effect=keyed", 0),
        ("submitted_by=alice", 4),
        ("submitted_by=bob&agent=clerk", 1),
        ("submitted_by=nobody", 0),
        ("tool=book&class=business_rule", 1),
        ("tool=look&class=business_rule", 0),
        ("class=auth&not_tool=look", 0),
        ("state=running", 0),
        ("state=running&agent=clerk", 0),
        (of_worker.as_str(), 1),
        (not_of_worker.as_str(), 0),
        ("not_worker=nobody", 8),
        ("look_ms=10&contains=nowhere", 0),
        ("key=k3", 1),
        ("conversation=c1", 2),
        ("argument=/n%3D2", 1),
        ("argument=/n%3D2&tool=look", 0),
        ("output=/at%3DRome&argument=/n%3D1", 1),
        ("contains=Paris", 1),
        ("not_state=failed", 6),
        ("not_state=failed&not_state=succeeded", 0),
        ("not_class=auth", 7),
        ("since=2020-01-01T00:00:00Z&until=2021-01-01T00:00:00Z", 0),
        ("since=2020-01-01T00:00:00Z", 8),
        ("task=01a1f813-c80f-740d-a05c-89d86eeddd01", 0),
    ] {
        assert_eq!(count(http, "calls", query).await, wanted, "{query}");
    }
    let list = http.get("/v1/calls").await.must(200);
    let ids: Vec<&str> = list["calls"].as_array().unwrap().iter().map(|call| call["call"].as_str().unwrap()).collect();
    assert!(ids.is_sorted_by(|newer, older| newer > older), "newest first: {ids:?}");
    let page = http.get("/v1/calls?contains=Rome&page_size=2").await.must(200);
    assert_eq!((&page["searched"]["complete"], page["calls"].as_array().unwrap().len()), (&json!(false), 2));
    assert!(page["searched"]["back_to"].is_string());
    wrong_queries_say_what_is_allowed(http, page["next_page_token"].as_str().unwrap()).await;
}

/// `token`: of another list.
async fn wrong_queries_say_what_is_allowed(http: &Http, token: &str) {
    for (query, says) in [
        (format!("calls?contains=Paris&page_token={token}").as_str(), "page_token is not of this list"),
        ("calls?page_token=x", "page_token is not of this list"),
        ("calls?tool=a%00b", "U+0000"),
        ("calls?tool=a&tool=b", "tool is given 2 times"),
        ("calls?since=2h", "since is \"2h\"; allowed: a time with its zone"),
        ("calls?since=%2B200000-01-01T00:00:00Z", "allowed: 1970 to 9999"),
        ("calls?until=0001-01-01T00:00:00Z", "allowed: 1970 to 9999"),
        ("calls?page_size=x", "page_size is \"x\"; allowed: a whole number"),
        ("calls?page_size=1001", "allowed: 1 to 1000"),
        ("calls?argument=city", "allowed: POINTER=VALUE"),
        ("calls?tool=echo&model=small", "allowed: one of them"),
        ("calls?state=gone", "state is \"gone\"; allowed: ready, running, "),
        ("calls?look_ms=9", "look_ms is 9; allowed: 10 to 2000"),
        ("calls?not_effect=bad", "allowed: read"),
        ("calls?toool=echo", "unknown parameter \"toool\"; allowed: tool, not_tool, "),
        ("tasks?code=bad", "allowed: "),
        ("tasks?not_state=bad", "allowed: "),
        ("events/missed?since=-200000-01-01T00:00:00Z", "since"),
        ("events?after=-200000-01-01T00:00:00Z", "after"),
        ("tasks/01a20236-ac46-7781-a3d0-49c0fb4d6170/steps?since=3", "after_step"),
    ] {
        let problem = http.get(&format!("/v1/{query}")).await;
        let detail = problem.problem(422, "invalid_value");
        assert!(detail.contains(says), "{query}: {detail}");
    }
}

async fn tasks_are_found_by_what_they_are_and_by_what_they_are_not(http: &Http) {
    for (query, wanted) in [
        ("", 3),
        ("state=succeeded", 3),
        ("not_state=succeeded", 0),
        ("state=running", 0),
        ("state=waiting", 0),
        ("state=failed", 0),
        ("code=answered", 3),
        ("code=model_failed", 0),
        ("code=cancelled", 0),
        ("agent=clerk", 2),
        ("not_agent=clerk", 1),
        ("not_agent=clerk&not_agent=guide", 0),
        ("model=large", 1),
        ("model=none", 0),
        ("submitted_by=alice", 2),
        ("submitted_by=bob&agent=guide", 0),
        ("contains=a room", 2),
        ("contains=a room&agent=clerk", 1),
        ("contains=nowhere", 0),
    ] {
        assert_eq!(count(http, "tasks", query).await, wanted, "{query}");
    }
    let page = http.get("/v1/tasks?page_size=1&submitted_by=alice").await.must(200);
    let searched = &page["searched"];
    assert_eq!((&searched["tasks"], &searched["complete"]), (&json!(1), &json!(false)), "{page}");
    assert_eq!(searched["back_to"], page["tasks"][0]["submitted_at"]);
}

async fn an_export_has_what_the_list_has_and_says_whether_that_is_all(http: &Http) {
    let whole = http.get("/v1/calls/export?submitted_by=bob&format=jsonl").await;
    assert_eq!((whole.status, &whole.headers["content-type"]), (200, &"application/x-ndjson".parse().unwrap()));
    assert!(whole.headers["content-disposition"].to_str().unwrap().starts_with("attachment; filename=\"calls-2"));
    let lines: Vec<Value> = whole.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let list = http.get("/v1/calls?submitted_by=bob").await.must(200);
    assert_eq!(lines[..4], *list["calls"].as_array().unwrap());
    assert_eq!(lines[4..], [json!({"exported": 4, "complete": true})]);

    let part = http.get("/v1/calls/export?submitted_by=bob&format=csv&limit=3").await;
    assert_eq!(part.headers["content-type"], "text/csv; charset=utf-8; header=present");
    let lines: Vec<&str> = part.text.lines().collect();
    assert!(lines[0].starts_with("call,tool,state,class,"), "{}", part.text);
    assert_eq!((lines.len(), lines[4]), (5, "# exported 3: there are more"));
    http.get("/v1/calls/export?format=xml").await.problem(422, "invalid_value");
}
