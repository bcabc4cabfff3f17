//! Scripted models: files of rules.

use redial_llm::Model;
use redial_proto::{ErrorClass, Finish, Message, MessageCall, Role, TaskId, TurnReply, TurnRequest};
use serde_json::Value;

use crate::request::{load, request, tool};

fn model(script: &str) -> Model {
    let text = "[models.m]\nprovider = \"script\"\nscript = \"rules.toml\"\ninput_price = 2\noutput_price = 10\n";
    load(text, script, &|_| None).unwrap().remove(0)
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn called(tool: &str, arguments: &str) -> Message {
    let call = MessageCall { id: "c".to_owned(), tool: tool.to_owned(), arguments: arguments.to_owned() };
    Message { calls: vec![call], ..Message::text(Role::Assistant, "") }
}

fn result(tool: &str, content: &str, class: Option<ErrorClass>) -> Message {
    Message { tool: Some(tool.to_owned()), class, ..Message::text(Role::Tool, content) }
}

fn after(messages: Vec<Message>) -> TurnRequest {
    TurnRequest { messages, tools: vec![tool("get_weather")], ..request() }
}

async fn says(model: &Model, messages: Vec<Message>) -> TurnReply {
    model.ask(&after(messages), |_| ()).await.unwrap()
}

async fn text(model: &Model, messages: Vec<Message>) -> String {
    says(model, messages).await.text.unwrap()
}

/// Makes a model in which each rule answers with its condition.
fn when(conditions: &[&str]) -> Model {
    let rules = conditions.iter().map(|when| format!("[[rule]]\nwhen = {{ {when} }}\ntext = '''{when}'''\n"));
    model(&(rules.collect::<Vec<_>>().concat() + "[[rule]]\ntext = 'nothing'\n"))
}

#[tokio::test]
async fn the_first_rule_that_matches_answers() {
    let model = when(&[
        "by_redial = true",
        "tool = 'list'",
        "class = 'timeout'",
        "failed = true",
        "results_at_least = 2",
        "results = 1",
        "contains = ['Paris', 'Rome']",
        "contains = 'Paris'",
        "matches = '^[0-9]+$'",
        "last = 'system'",
        "user_matches = '(?i)HAIKU'",
    ]);
    for (messages, wanted) in [
        (vec![user("Paris or Rome?")], "contains = ['Paris', 'Rome']"),
        (vec![user("Paris?")], "contains = 'Paris'"),
        (vec![user("42")], "matches = '^[0-9]+$'"),
        (vec![user("a haiku")], "user_matches = '(?i)HAIKU'"),
        (vec![Message::text(Role::System, "x")], "last = 'system'"),
        (vec![user("x"), result("list", "[]", None)], "tool = 'list'"),
        (vec![user("x"), result("a", "x", Some(ErrorClass::Timeout))], "class = 'timeout'"),
        (vec![user("x"), result("a", "x", Some(ErrorClass::Auth))], "failed = true"),
        (vec![user("x"), result("a", "x", None), result("a", "x", None)], "results_at_least = 2"),
        (vec![user("x"), result("a", "x", None), user("x"), result("a", "x", None)], "results = 1"),
        (vec![user("x"), Message { by_redial: true, ..user("go") }], "by_redial = true"),
        (vec![user("x")], "nothing"),
        (vec![], "nothing"),
    ] {
        assert_eq!(text(&model, messages).await, wanted);
    }
}

#[tokio::test]
async fn rules_see_everything_since_the_last_user_message() {
    let model = when(&["seen = '2026-01-01'", "seen = 'get_w', not_seen = 'sunny'", "user = 'Rome', last = 'tool'"]);
    let old = called("book", "{\"date\":\"2026-01-01\"}");
    let asked = vec![user("x"), old, user("Rome"), called("get_weather", "{}"), result("get_weather", "rain", None)];
    assert_eq!(text(&model, asked.clone()).await, "seen = 'get_w', not_seen = 'sunny'");
    let mut sunny = asked.clone();
    sunny[4].content = "sunny".to_owned();
    assert_eq!(text(&model, sunny).await, "user = 'Rome', last = 'tool'");
    assert_eq!(text(&model, asked[..2].to_vec()).await, "seen = '2026-01-01'");
}

#[tokio::test]
async fn rules_see_the_request() {
    let model = when(&["tools = false", "offers = 'fly'", "language = 'zh'", "turn = 7"]);
    let base = after(vec![user("x")]);
    for (request, wanted) in [
        (TurnRequest { tools: Vec::new(), ..base.clone() }, "tools = false"),
        (TurnRequest { tools: vec![tool("fly")], ..base.clone() }, "offers = 'fly'"),
        (TurnRequest { language: redial_proto::Language::Zh, ..base.clone() }, "language = 'zh'"),
        (TurnRequest { turn: 7, ..base.clone() }, "turn = 7"),
        (base, "nothing"),
    ] {
        assert_eq!(model.ask(&request, |_| ()).await.unwrap().text.unwrap(), wanted);
    }
}

#[tokio::test]
async fn an_answer_is_filled_in() {
    let model = model(include_str!("script/filled_in.toml"));
    let reply = says(&model, vec![user("Ann in Paris")]).await;
    assert_eq!(reply.text.as_deref(), Some("Ann, Paris: Ann in Paris"));
    let results = [result("a", r#"{"degrees": 21.50}"#, None), result("b", r#"{"list": [1, "x"]}"#, None)];
    let reply = says(&model, [vec![user("?")], results.to_vec()].concat()).await;
    assert_eq!(reply.text.as_deref(), Some(r#"21.5 and x: {"list":[1,"x"]}"#));
    assert_eq!((reply.thought.as_deref(), reply.usage.cost_micros), (Some(r#"{"degrees":21.5}"#), Some(300)));
    let reply = says(&model, vec![user(r#"{"book": 1, "days": 3}"#)]).await;
    assert_eq!((reply.text.as_deref(), reply.finish), (Some("I book."), Finish::ToolCalls));
    let arguments: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
    assert_eq!(arguments["days"], serde_json::json!([1, 3]));
    let day =
        |text: &Value| text.as_str().unwrap().trim_matches(['o', 'n', ' ', '!']).parse::<chrono::NaiveDate>().unwrap();
    assert_eq!((day(&arguments["date"]) - day(&arguments["note"])).num_days(), 31);
    let reply = says(&model, vec![user("damaged")]).await;
    assert!(reply.calls[0].arguments.starts_with("{\"date\": \"20"), "{reply:?}");
    assert_eq!(reply.calls[1].arguments, "{}");
    let failure = model.ask(&after(vec![user("x")]), |_| ()).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Configuration);
    assert_eq!(failure.message, "script rules.toml: rule 5: {{last.not.there}} has no value");
}

#[tokio::test]
async fn errors_are_classified_like_a_providers() {
    let model = model(
        r#"
[[rule]]
when = { contains = "class" }
error = { class = "auth", message = "no" }
[[rule]]
times = 2
error = { status = 429, message = "slow down", retry_after = "1500ms" }
[[rule]]
text = "now"
"#,
    );
    let failure = model.ask(&after(vec![user("class")]), |_| ()).await.unwrap_err();
    assert_eq!((failure.class, failure.message.as_str()), (ErrorClass::Auth, "no"));
    let request = after(vec![user("x")]);
    for _ in 0..2 {
        let failure = model.ask(&request, |_| ()).await.unwrap_err();
        assert_eq!((failure.class, failure.retry_after_ms), (ErrorClass::RateLimited, Some(1500)));
        assert_eq!(failure.message, "the provider answered 429 Too Many Requests: slow down");
    }
    assert_eq!(model.ask(&request, |_| ()).await.unwrap().text.as_deref(), Some("now"));
    let other = TurnRequest { task: TaskId::generate(), ..request };
    assert!(model.ask(&other, |_| ()).await.is_err());
}

#[tokio::test]
async fn raw_bodies_are_parsed_like_their_providers() {
    let model = model(include_str!("script/bodies.toml"));
    let reply = says(&model, vec![user("openai")]).await;
    let end = (reply.text.as_deref(), reply.finish, reply.usage.input_tokens);
    assert_eq!(end, (Some("openai"), Finish::Length, Some(5)));
    assert_eq!(says(&model, vec![user("anthropic")]).await.calls[0].arguments, "{\"a\":1}");
    assert_eq!(says(&model, vec![user("stream")]).await.text.as_deref(), Some("stream"));
    assert_eq!(says(&model, vec![user("react")]).await.calls[0].arguments, "{");
    let failure = model.ask(&after(vec![user("x")]), |_| ()).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Unavailable);
}

#[tokio::test]
async fn a_script_can_answer_in_react() {
    let model = model(
        "style = \"react\"\n[[rule]]\nwhen = { last = \"user\" }\n\
         text = \"Thought: look\\nAction: get_weather\\nAction Input: {}\\nObservation: 1\"\n\
         [[rule]]\ntext = \"done\"\n",
    );
    let reply = says(&model, vec![user("x")]).await;
    assert_eq!((reply.calls[0].name.as_str(), reply.thought.as_deref()), ("get_weather", Some("look")));
    let reply = says(&model, vec![user("x"), result("get_weather", "1", None)]).await;
    assert!(reply.problem.is_some() && reply.text.as_deref() == Some("done"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_takes_its_delay_and_comes_in_pieces() {
    let model = model("[[rule]]\nthought = \"hm\"\ntext = \"一二三四五\"\ndelay = \"3s\"\nchunks = 2\n");
    let began = tokio::time::Instant::now();
    let mut pieces = Vec::new();
    let reply = model.ask(&after(vec![user("x")]), |delta| pieces.push((delta.thought, delta.text))).await.unwrap();
    assert!(began.elapsed().as_secs_f64() >= 2.9, "{:?}", began.elapsed());
    let pieces: Vec<_> = pieces.iter().map(|(thought, text)| (thought.as_str(), text.as_str())).collect();
    assert_eq!(pieces, [("h", ""), ("m", ""), ("", "一二三"), ("", "四五")]);
    assert_eq!((reply.text.as_deref(), reply.model.as_str()), (Some("一二三四五"), "script"));
}

#[tokio::test]
async fn no_rule_matches() {
    let model = model("[[rule]]\nname = \"x\"\nwhen = { contains = \"y\" }\ntext = \"a\"\n");
    let failure = model.ask(&after(vec![user("Who?"), result("a", "x", None)]), |_| ()).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Configuration);
    assert_eq!(
        failure.message,
        "script rules.toml: no rule matches; the last message is a tool message: x (1 results since the user's message, 1 \
         tools offered)"
    );
}
