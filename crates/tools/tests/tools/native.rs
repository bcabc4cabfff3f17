//! Rust functions as tools.

use std::time::Duration;

use redial_proto::{ErrorClass, Failure, ToolEffect, limits::MAX_PAYLOAD};
use redial_tools::{Context, Rules, Tool, ToolConflict, ToolError, ToolResult, check_compatible, check_reserved};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Deserialize, JsonSchema)]
struct BookFlight {
    /// Where to.
    to: String,
    seats: u8,
    #[serde(default)]
    meal: Option<Meal>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Meal {
    Fish,
    Rice,
}

#[derive(Serialize)]
struct Booking {
    number: String,
}

async fn book_flight(context: Context, flight: BookFlight) -> Result<Booking, ToolError> {
    if flight.seats == 0 {
        return Err(ToolError::invalid("/seats", "minimum", flight.seats, "1 to 9").and_invalid("/to", "x", "y", "z"));
    }
    match flight.to.as_str() {
        "nowhere" => Err(ToolError::business_rule("no such place")),
        "busy" => Err(ToolError::rate_limited("quota").retry_after(Duration::from_secs(2))),
        "crash" => panic!("engine {} failed", flight.seats),
        to => {
            let meal = flight.meal.map_or(String::new(), |meal| format!("-{meal:?}"));
            Ok(Booking { number: format!("{to}-{}-{}{meal}", flight.seats, context.idempotency_key) })
        }
    }
}

async fn add(numbers: Vec<i64>) -> i64 {
    numbers.iter().sum()
}

async fn run(tool: &Tool, arguments: &str) -> ToolResult {
    let context = Context { idempotency_key: "k1".to_owned(), ..Context::new(&tool.spec.name) };
    tool.run(context, RawValue::from_string(arguments.to_owned()).unwrap()).await
}

async fn failure(tool: &Tool, arguments: &str) -> Failure {
    run(tool, arguments).await.unwrap_err()
}

#[tokio::test]
async fn functions_become_tools() {
    let tool = Tool::new("book_flight", book_flight).describe("Books.").effect(ToolEffect::Keyed);
    let booked = run(&tool, r#"{"to":"上海","seats":2,"meal":"fish"}"#).await.unwrap();
    assert_eq!(booked.get(), r#"{"number":"上海-2-k1-Fish"}"#);
    assert_eq!(run(&Tool::new("add", add), "[1,2,3]").await.unwrap().get(), "6");
    let closure = Tool::new("twice", |number: usize| async move { Ok::<_, ToolError>(number * 2) });
    assert_eq!(run(&closure, "21").await.unwrap().get(), "42");
}

#[test]
fn the_spec_comes_from_the_types() {
    let tool = Tool::new("book_flight", book_flight).describe("Books.").timeout(Duration::from_millis(1500));
    insta::assert_json_snapshot!(tool.spec);
    let spec = tool.polling().exact_arguments().spec;
    assert_eq!((spec.polling, spec.sequential, spec.repairs), (true, false, false));
    assert!(Tool::new("add", add).sequential().spec.sequential);
}

#[tokio::test]
async fn errors_keep_their_class() {
    let tool = Tool::new("book_flight", book_flight);
    let invalid = failure(&tool, r#"{"to":"a","seats":0}"#).await;
    let told = (invalid.class, invalid.details.len(), invalid.effect_possible);
    assert_eq!(told, (ErrorClass::InvalidArguments, 2, false));
    assert_eq!(invalid.message, "/seats: 0 was sent; allowed: 1 to 9; /to: \"y\" was sent; allowed: z");
    let limited = failure(&tool, r#"{"to":"busy","seats":1}"#).await;
    assert_eq!((limited.class, limited.retry_after_ms), (ErrorClass::RateLimited, Some(2000)));
    assert_eq!(failure(&tool, r#"{"to":"nowhere","seats":1}"#).await.class, ErrorClass::BusinessRule);
    let error = ToolError::unavailable("no route").without_effect();
    assert_eq!(error.to_string(), "unavailable: no route");
    assert!(!Failure::from(error).effect_possible);
}

#[tokio::test]
async fn a_panic_is_an_internal_error() {
    let failure = failure(&Tool::new("book_flight", book_flight), r#"{"to":"crash","seats":3}"#).await;
    assert_eq!((failure.class, failure.effect_possible), (ErrorClass::Internal, true));
    assert_eq!(failure.message, "the tool panicked: engine 3 failed");
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_type_say_where() {
    let tool = Tool::new("book_flight", book_flight);
    let failure = failure(&tool, r#"{"to":"a","seats":1,"meal":"pizza"}"#).await;
    insta::assert_json_snapshot!(failure);
}

/// Returns its argument: as a result if it starts with "ok", else as an error.
async fn repeat(text: String) -> Result<String, ToolError> {
    if text.starts_with("ok") {
        return Ok(text);
    }
    let error = ToolError::invalid("/to", "exists", &text, "db-8.prod.internal:5432");
    Err(error.and_invalid("/x", "y", 1, "2"))
}

#[tokio::test]
async fn errors_hide_hosts_except_in_what_was_sent() {
    let tool = Tool::new("repeat", repeat);
    let failure = failure(&tool, r#""db-7.prod.internal:5432""#).await;
    assert_eq!(
        failure.message,
        "/to: \"db-7.prod.internal:5432\" was sent; allowed: [host]; /x: 1 was sent; allowed: 2"
    );
    assert_eq!(failure.details[0].allowed, "[host]");
    assert_eq!(failure.details[0].sent, Some("db-7.prod.internal:5432".into()));
    assert_eq!(run(&tool, r#""ok 10.0.0.1""#).await.unwrap().get(), r#""ok 10.0.0.1""#);
    let down = Tool::new("down", async |_: Vec<i64>| -> Result<(), ToolError> {
        Err(ToolError::unavailable("connect to http://10.1.2.3:8080/v1 failed"))
    });
    assert_eq!(run(&down, "[]").await.unwrap_err().message, "connect to http://[host]/v1 failed");
}

#[tokio::test]
async fn what_only_operators_may_read_is_apart_from_the_message() {
    let tool = Tool::new("export", async |_: Vec<i64>| -> Result<(), ToolError> {
        Err(ToolError::tool_failed("the export failed").diagnostics("canary-1 refused by db-7.internal"))
    });
    let failed = run(&tool.secret("canary-1"), "[]").await.unwrap_err();
    assert_eq!((failed.class, failed.effect_possible), (ErrorClass::ToolFailed, true));
    assert_eq!(failed.message, "the export failed");
    assert_eq!(failed.diagnostics.as_deref(), Some("[secret] refused by [host]"));
}

#[tokio::test]
async fn a_secret_is_in_no_result_and_no_error() {
    let tool = Tool::new("repeat", repeat).secret("canary-1").secret("other \"2\"");
    let answer = run(&tool, r#""ok canary-1 other \"2\" other%20%222%22""#).await.unwrap();
    assert_eq!(answer.get(), r#""ok [secret] [secret] [secret]""#);
    let failure = failure(&tool, r#""canary-1""#).await;
    assert!(!format!("{failure:?}").contains("canary"), "{failure:?}");
    assert!(!format!("{tool:?}").contains("canary"), "{tool:?}");
}

#[test]
fn reserved_names_and_pools_are_refused() {
    let refusal = |tool: Tool| check_reserved(&tool.spec).unwrap_err();
    let pool = refusal(Tool::new("add", add).pool("models"));
    assert_eq!(pool, r#"pool "models" is reserved for models; choose another name"#);
    let wanted = r#"names that start with "model-" are reserved for models; choose another"#;
    assert_eq!(refusal(Tool::new("model-add", add)), wanted);
    assert_eq!(check_reserved(&Tool::new("models", add).pool("model-x").spec), Ok(()));
}

#[tokio::test]
async fn the_output_of_every_handler_is_checked_and_quoted_without_parts_of_secrets() {
    let secret = "canary-123";
    let echo = Tool::echo().secret(secret);
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    assert_eq!(failure(&echo, &deep).await.class, ErrorClass::OutputInvalid);
    // The preview, of 500 bytes, ends before, within and after the secret.
    for shift in 488..=500 {
        let large = format!("\"{}{secret}{}\"", ".".repeat(shift), ".".repeat(MAX_PAYLOAD));
        let failure = failure(&echo, &large).await;
        assert_eq!(failure.class, ErrorClass::OutputTooLarge);
        assert!(!failure.message.contains("can"), "{}", failure.message);
    }
}

#[test]
fn a_limited_tool_gets_its_own_pool_and_a_pool_has_one_limit() {
    let tool = |name: &str| Tool::new(name, add);
    assert_eq!(tool("a").concurrency(3).spec.pool, "a");
    assert_eq!(tool("a").pool("p").concurrency(3).spec.pool, "p");
    assert!(check_compatible(&[tool("a").concurrency(3), tool("b").concurrency(4)]).is_ok());
    let shared = |name: &str, limit| tool(name).pool("p").concurrency(limit);
    assert!(check_compatible(&[shared("a", 3), shared("b", 3), tool("c").pool("p")]).is_ok());
    insta::assert_snapshot!(check_compatible(&[shared("a", 3), shared("b", 4)]).unwrap_err());
    let model = |name, limit| shared(name, limit).pool("models");
    assert_eq!(check_compatible(&[model("model-a", 3), model("model-b", 4)]), Ok(()), "each model has its own limit");
    assert_eq!(check_compatible(&[tool("a"), tool("a")]), Err(ToolConflict::Name("a".to_owned())));
}

#[test]
fn every_broken_rule_is_named_at_once() {
    let check = |seats: u32, from: &str| {
        let mut rules = Rules::default();
        if from == "上海" {
            rules.broken("/from", "other_place", from, "another place than /to");
        }
        if seats > 5 {
            rules.broken("/seats", "range", seats, "1 to 5");
        }
        rules.into_result()
    };
    assert_eq!(check(5, "北京"), Ok(()));
    let failure = Failure::from(check(6, "上海").unwrap_err().hint("5 at most"));
    let broken: Vec<_> = failure.details.iter().map(|v| (v.path.as_str(), v.hint.as_deref())).collect();
    assert_eq!(broken, [("/from", None), ("/seats", Some("5 at most"))]);
    assert_eq!((failure.class, failure.effect_possible), (ErrorClass::InvalidArguments, false));
}
