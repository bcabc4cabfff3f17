//! ReAct: texts as models write them, and how they are read.

mod history;

use redial_llm::{Api, openai, react, read_response};
use redial_proto::{Finish, Language, TurnReply, TurnRequest};

use crate::{
    cases,
    request::{request, tool},
};

fn asked() -> TurnRequest {
    TurnRequest { tools: vec![tool("get_weather"), tool("查天气")], ..request() }
}

fn read(text: &str) -> TurnReply {
    react::read(text, &asked(), false)
}

/// Writes a reply in short: `name(arguments)`, the answer, or `problem`, each after the thought.
fn short(reply: &TurnReply) -> String {
    let thought = reply.thought.as_ref().map(|thought| format!("[{thought}] ")).unwrap_or_default();
    let problem = if reply.problem.is_some() { "problem: " } else { "" };
    let calls: Vec<_> = reply.calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
    let calls = calls.concat();
    format!("{thought}{problem}{calls}{}", reply.text.as_deref().unwrap_or_default())
}

#[test]
fn every_text_of_the_corpus_is_read_as_it_says() {
    for (text, wanted) in cases(include_str!("react/corpus.txt")) {
        assert_eq!(short(&read(&text)).trim_end(), wanted, "{text}");
    }
}

#[test]
fn what_has_no_single_reading_is_not_run() {
    for text in [
        "Action: get_weather(\"Paris\", 2)",
        "Action: get_weather(city=Paris)",
        "Action: get_weather(a=1)\nAction Input: {\"a\": 2}",
        "Action: get_weather(a=1, a=2)",
        "Action: get_weather(id=940011189922385512345678)\nAction Input: {\"id\": 940011189922385512345679}",
        "Action: get_weather({\"a\":[0.1]})\nAction Input: {\"a\":[0.10000000000000000001]}",
        "Action: get_weather(a=1e999)",
        "Action: get_weather({\"a\":1}) // look",
        "Action: get_weather(a=1)\n{\"a\": 2}",
        "Action: get_weather = Paris",
    ] {
        let reply = read(text);
        assert!(reply.calls.is_empty() && reply.text.as_deref() == Some(text), "{reply:?}");
        let problem = reply.problem.unwrap();
        assert!(problem.contains("\"Action Input:\"") && problem.contains("JSON object"), "{problem}");
    }
    let zh = TurnRequest { language: Language::Zh, ..asked() };
    assert!(react::read("Action: get_weather(city=Paris)", &zh, false).problem.unwrap().contains("JSON 对象"));
    for text in [
        "{\"action\":\"get_weather\",\"action_input\":{}}\n{\"action\":\"get_weather\",\"action_input\":{}}",
        "{\"action\":\"get_weather\",\"action_input\":{}}\nI could do that, or not.",
        "One could send {\"action\":\"get_weather\",\"action_input\":{}}",
        "{\"action\":\"get_weather\",\"action\":\"fly\",\"action_input\":{}}",
        "It has\n{\"degrees\": 30}",
        "<tool_response>3</tool_response><tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>",
        "<tool_response>3</tool_response>\n{\"action\":\"get_weather\",\"action_input\":{}}",
    ] {
        let reply = read(text);
        assert!(reply.calls.is_empty(), "{reply:?}");
        assert!(reply.problem.unwrap().contains("\"Action:\""));
    }
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

/// Each line is repeated to a mebibyte, behind what stands before `»`. These texts are read at once, or take hours if the time
/// grows faster than the length.
#[test]
fn hostile_texts_are_read() {
    for line in include_str!("react/hostile.txt").lines() {
        let line = line.replace('⏎', "\n").replace('␠', " ");
        let (once, part) = line.split_once('»').unwrap_or(("", &line));
        let text = format!("{once}{}", part.repeat((1 << 20) / part.len()));
        let reply = read(&text);
        assert!(reply.calls.len() <= 1, "{line}: {:?}", reply.calls);
        let body = serde_json::json!({"choices": [{"message": {"content": text}}]});
        assert!(openai::reply(&asked(), &body).is_some(), "{line}");
        let _ = (
            read_response(Api::OpenAi, &asked(), text.as_bytes(), true),
            read_response(Api::Anthropic, &asked(), text.as_bytes(), true),
        );
    }
}
