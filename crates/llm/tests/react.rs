//! ReAct: texts as models write them, and how they are read.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/request.rs"]
mod common;
#[path = "react/forms.rs"]
mod forms;
#[path = "react/history.rs"]
mod history;
#[path = "react/speed.rs"]
mod speed;

use proptest::prelude::*;
use redial_llm::react;
use redial_proto::{Finish, Language, TurnReply, TurnRequest};

use common::{request, tool};

fn asked() -> TurnRequest {
    TurnRequest { tools: vec![tool("get_weather"), tool("查天气")], ..request() }
}

fn read(text: &str) -> TurnReply {
    react::read(text, &asked(), false)
}

/// A reply in short: `name(arguments)`, the answer, or `problem`, each after the thought.
fn short(reply: &TurnReply) -> String {
    let thought = reply.thought.as_ref().map(|thought| format!("[{thought}] ")).unwrap_or_default();
    let problem = if reply.problem.is_some() { "problem: " } else { "" };
    let calls: Vec<_> = reply.calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
    let calls = calls.concat();
    format!("{thought}{problem}{calls}{}", reply.text.as_deref().unwrap_or_default())
}

/// Cases: a name, the text of the model, and how it is read.
const CORPUS: &[(&str, &str, &str)] = &[
    (
        "as told",
        "Thought: look\nAction: get_weather\nAction Input: {\"city\": \"Paris\"}",
        "[look] get_weather({\"city\": \"Paris\"})",
    ),
    ("an answer", "Thought: I know\nAnswer: It is sunny.\nAnd warm.", "[I know] It is sunny.\nAnd warm."),
    (
        "an invented observation and answer",
        "Thought: look\nAction: get_weather\nAction Input: {\"city\":\"Paris\"}\nObservation: 30 degrees\nThought: warm\nAnswer: 30",
        "[look] get_weather({\"city\":\"Paris\"})",
    ),
    ("an invented error", "Action: get_weather\nAction Input: {}\nError: none\nAnswer: 30", "get_weather({})"),
    (
        "two actions",
        "Action: get_weather\nAction Input: {\"city\":\"Paris\"}\nAction: get_weather\nAction Input: {\"city\":\"Rome\"}",
        "get_weather({\"city\":\"Paris\"})",
    ),
    ("no thought", "Action: get_weather\nAction Input: {}", "get_weather({})"),
    (
        "a thought without a label",
        "I must look.\nAction: get_weather\nAction Input: {}",
        "[I must look.] get_weather({})",
    ),
    ("lower case", "thought: look\naction: get_weather\naction input: {}", "[look] get_weather({})"),
    ("lower case answer", "answer: yes", "yes"),
    (
        "bold labels",
        "**Thought:** look\n**Action:** get_weather\n**Action Input:** {\"a\":1}",
        "[look] get_weather({\"a\":1})",
    ),
    ("bold lines", "**Action: get_weather**\n**Action Input: {\"a\":1}**", "get_weather({\"a\":1})"),
    ("a bold answer", "**Answer:** **yes**", "**yes**"),
    (
        "headings and lists",
        "### Thought: look\n- Action: `get_weather`\n- Action Input: `{\"a\":1}`",
        "[look] get_weather({\"a\":1})",
    ),
    (
        "a fence around the input",
        "Action: get_weather\nAction Input:\n```json\n{\"a\": 1}\n```\nDone.",
        "get_weather({\"a\": 1})",
    ),
    (
        "a fence around everything",
        "```\nThought: look\nAction: get_weather\nAction Input: {\"a\":1}\n```",
        "[look] get_weather({\"a\":1})",
    ),
    ("a fence around an answer", "```text\nAnswer: yes\n```", "yes"),
    (
        "fences in fences",
        "```\nAction: get_weather\nAction Input:\n```json\n{\"a\":1}\n```\n```",
        "get_weather({\"a\":1})",
    ),
    (
        "full-width colons",
        "Thought：look\nAction：get_weather\nAction Input：{\"a\":1}",
        "[look] get_weather({\"a\":1})",
    ),
    (
        "a Chinese tool",
        "Thought: 查一下\nAction: 查天气\nAction Input: {\"城市\": \"北京\"}",
        "[查一下] 查天气({\"城市\": \"北京\"})",
    ),
    (
        "Chinese labels",
        "思考：查一下\n行动：查天气\n行动输入：{\"城市\":\"北京\"}\n观察：晴",
        "[查一下] 查天气({\"城市\":\"北京\"})",
    ),
    ("a Chinese answer", "思考：知道了\n最终答案：晴天", "[知道了] 晴天"),
    ("cut off in the input", "Action: get_weather\nAction Input: {\"city\": \"Par", "get_weather({\"city\": \"Par)"),
    ("an action without input", "Thought: look\nAction: get_weather", "[look] get_weather()"),
    ("an empty input", "Action: get_weather\nAction Input:\nObservation: x", "get_weather()"),
    ("an input without its label", "Action: get_weather\n{\"a\":1}", "get_weather({\"a\":1})"),
    (
        "an input over several lines",
        "Action: get_weather\nAction Input: {\n  \"a\": 1\n}\nObservation: x",
        "get_weather({\n  \"a\": 1\n})",
    ),
    ("words after the input", "Action: get_weather\nAction Input: {\"a\":1}\nNow I wait.", "get_weather({\"a\":1})"),
    (
        "two objects stay two",
        "Action: get_weather\nAction Input: {\"a\":1}, {\"a\":2}",
        "get_weather({\"a\":1}, {\"a\":2})",
    ),
    ("a plain text as input", "Action: get_weather\nAction Input: Paris", "get_weather(Paris)"),
    ("a damaged input", "Action: get_weather\nAction Input: {'a': 1,}\nObservation: x", "get_weather({'a': 1,})"),
    (
        "a colon in the input",
        "Action: get_weather\nAction Input: {\"q\": \"Answer: x\"}",
        "get_weather({\"q\": \"Answer: x\"})",
    ),
    ("an unknown tool", "Action: fly\nAction Input: {}", "fly({})"),
    ("quotes and dots", "Action: \"get_weather\".\nAction Input: {}", "get_weather({})"),
    ("brackets", "Action: [get_weather]\nAction Input: {}", "get_weather({})"),
    ("a call", "Action: get_weather({\"a\":1})", "get_weather({\"a\":1})"),
    ("an empty call", "Action: get_weather()\nAction Input: {}", "get_weather({})"),
    (
        "everything in JSON",
        "Action:\n```json\n{\"action\": \"get_weather\", \"action_input\": {\"a\": 1}}\n```",
        "get_weather({\"a\": 1})",
    ),
    ("JSON in JSON", "Action: {\"name\":\"get_weather\",\"arguments\":\"{\\\"a\\\":1}\"}", "get_weather({\"a\":1})"),
    ("numbered labels", "Thought 1: look\nAction 1: get_weather\nAction Input 1: {}", "[look] get_weather({})"),
    (
        "an action in an answer",
        "Answer: Write this:\nAction: get_weather\nAction Input: {}",
        "Write this:\nAction: get_weather\nAction Input: {}",
    ),
    ("the word in an answer", "Thought: x\nAnswer: The next Action: sleep", "[x] The next Action: sleep"),
    ("no action wanted", "Thought: I know\nAction: None\nAnswer: 42", "[I know] 42"),
    ("no action and no answer", "Thought: hm\nAction: None", "problem: hm"),
    ("an observation first", "Observation: 30\nThought: warm\nAnswer: 30", "[warm] 30"),
    ("all on one line", "Thought: look Action: get_weather Action Input: {\"a\":1}", "[look] get_weather({\"a\":1})"),
    ("an action within a thought", "Thought: look. Action: get_weather\nAction Input: {}", "[look.] get_weather({})"),
    ("a final answer within a thought", "I know it. Final Answer: 42", "[I know it.] 42"),
    ("neither", "The weather is fine.", "problem: The weather is fine."),
    ("only a thought", "Thought: The weather is fine.", "problem: The weather is fine."),
    ("only an input", "Action Input: {\"a\":1}", "problem: "),
    ("an empty answer", "Thought: x\nAnswer:", "problem: x"),
    ("nothing", " \n", "problem: "),
];

#[test]
fn the_whole_table() {
    let read = CORPUS.iter().map(|(case, written, wanted)| (case, short(&read(written)), *wanted));
    let wrong: Vec<_> = read.filter(|(_, found, wanted)| found != wanted).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_finish_says_why_a_model_stopped() {
    assert_eq!(read("Answer: x").finish, Finish::Stop);
    assert_eq!(read("Action: a\nAction Input: {}").finish, Finish::ToolCalls);
    let cut = react::read("Thought: I was", &asked(), true);
    assert_eq!(cut.finish, Finish::Length);
    assert!(cut.problem.unwrap().contains("cut off"));
    let zh = TurnRequest { language: Language::Zh, ..asked() };
    assert!(react::read("天气很好", &zh, false).problem.unwrap().contains("行动"));
}

#[test]
fn without_tools_any_text_is_an_answer() {
    let reply = react::read("It is sunny.", &request(), false);
    assert_eq!((reply.text.as_deref(), reply.problem, reply.finish), (Some("It is sunny."), None, Finish::Stop));
    assert_eq!(react::read("Thought: x\nAnswer: y", &request(), false).text.as_deref(), Some("y"));
    assert!(react::read("", &request(), false).problem.is_some());
}

#[test]
fn without_tools_nothing_is_a_call_and_no_line_is_lost() {
    for (text, wanted) in [
        ("and then:\n**Action:** restart the pod\nand wait.", "and then:\n**Action:** restart the pod\nand wait."),
        ("Action: get_weather\nAction Input: {\"a\":1}", "Action: get_weather\nAction Input: {\"a\":1}"),
        ("Do this. Action: look Action Input: {}", "Do this. Action: look Action Input: {}"),
        ("The log says:\nError: disk full\nSo free some.", "The log says:\nError: disk full\nSo free some."),
        ("Observation: 3 of 4 pods run.", "Observation: 3 of 4 pods run."),
        ("Action: None", "Action: None"),
        ("Action: get_weather(1)", "Action: get_weather(1)"),
        ("{\"action\": \"get_weather\", \"action_input\": {}}", "{\"action\": \"get_weather\", \"action_input\": {}}"),
        ("```\nAction: restart\n```", "```\nAction: restart\n```"),
        ("<think>\nAction: x\n</think>\nError: y", "[Action: x] Error: y"),
        ("Thought: x\nAnswer: Try this:\nAction: restart", "[x] Try this:\nAction: restart"),
        ("```\nThought: x\nAnswer: y\n```", "[x] y"),
        ("I know it. Final Answer: 42", "[I know it.] 42"),
        ("Thought: x\nAnswer:", "x"),
        ("Answer:", "problem: "),
    ] {
        for cut_off in [false, true] {
            let reply = react::read(text, &request(), cut_off);
            assert_eq!(short(&reply), wanted, "{text}");
            assert!(reply.calls.is_empty(), "{reply:?}");
            assert_eq!(reply.finish == Finish::Length, cut_off, "{reply:?}");
        }
    }
}

/// Pieces of strange texts.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("Thought:".to_owned()),
        Just("\nAction:".to_owned()),
        Just("\nAction Input：".to_owned()),
        Just("\n**Observation:**".to_owned()),
        Just("\nFinal Answer:".to_owned()),
        Just("\n最终答案：".to_owned()),
        Just("```".to_owned()),
        Just("`".to_owned()),
        Just("{\"a\":".to_owned()),
        Just("1}".to_owned()),
        Just("\n".to_owned()),
        "\\PC{0,6}",
    ]
}

proptest! {
    #[test]
    fn every_text_is_a_call_an_answer_or_a_problem(pieces in proptest::collection::vec(piece(), 0..14), cut_off: bool, with_tools: bool) {
        let asked = if with_tools { asked() } else { request() };
        let text: String = pieces.concat();
        let reply = react::read(&text, &asked, cut_off);
        // Exactly one of: a call, an answer, a problem.
        let kinds = [!reply.calls.is_empty(), reply.text.is_some() && reply.problem.is_none(), reply.problem.is_some()];
        prop_assert_eq!(kinds.iter().filter(|is| **is).count(), 1, "{:?}", reply);
        prop_assert!(reply.calls.len() <= 1);
        // Names and arguments come from the text, except that JSON may escape them.
        for call in &reply.calls {
            prop_assert!(text.contains(&call.name) || text.contains('\\'), "{:?} in {:?}", call, text);
        }
    }

    #[test]
    fn text_that_is_sent_back_reads_the_same(city in "[a-zA-Z京 \"\\\\{}:]{0,12}", thought in "[a-z ]{0,10}") {
        let arguments = serde_json::json!({"city": city}).to_string();
        let text = format!("Thought: {thought}\nAction: get_weather\nAction Input: {arguments}\nObservation: 1");
        let reply = read(&text);
        prop_assert_eq!(&reply.calls[0].arguments, &arguments);
        prop_assert_eq!(reply.thought.unwrap_or_default(), thought.trim());
    }
}
