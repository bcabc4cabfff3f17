//! Forms of actions and of their inputs other than the one that models are told to use.

use redial_llm::react;
use redial_proto::{Language, TurnRequest};

use crate::{asked, read, short};

/// Cases: a name, the text of the model, and how it is read.
const CORPUS: &[(&str, &str, &str)] = &[
    // Thoughts.
    (
        "an action in thoughts without their first tag",
        "Thought: hm\nAction: get_weather\nAction Input: {\"city\":\"Oslo\"}\n</think>\nThought: look\nAction: get_weather\nAction Input: {\"city\":\"Rome\"}",
        "[Thought: hm\nAction: get_weather\nAction Input: {\"city\":\"Oslo\"}\n\nlook] get_weather({\"city\":\"Rome\"})",
    ),
    (
        "an action before thoughts",
        "Action: get_weather\nAction Input: {}\n<think>hm</think>\nAnswer: yes",
        "[Action: get_weather\nAction Input: {}\nhm] yes",
    ),
    ("an answer in thoughts", "<think>\nAnswer: 42\n</think>\nAnswer: 43", "[Answer: 42] 43"),
    (
        "thoughts that do not end",
        "<think>\nAction: get_weather\nAction Input: {}",
        "[Action: get_weather\nAction Input: {}] problem: ",
    ),
    ("thoughts and nothing else", "Answer: 42\n</think>", "[Answer: 42] problem: "),
    (
        "thoughts in a fence",
        "```\nAction: get_weather\nAction Input: {}\n</think>\nAnswer: yes\n```",
        "[Action: get_weather\nAction Input: {}] yes",
    ),
    (
        "a tag in the input",
        "Action: get_weather\nAction Input: {\"city\": \"</think>\"}",
        "get_weather({\"city\": \"</think>\"})",
    ),
    // Labels inside JSON.
    (
        "a label in a string",
        "Action: get_weather\nAction Input: {\"city\": \"Plan:\nAction: go\nObservation: x\"}\nObservation: y",
        "get_weather({\"city\": \"Plan:\nAction: go\nObservation: x\"})",
    ),
    (
        "a label in a string in a fence",
        "Action: get_weather\nAction Input:\n```json\n{\n\"city\": \"a\nAnswer: b\"\n}\n```\nObservation: y",
        "get_weather({\n\"city\": \"a\nAnswer: b\"\n})",
    ),
    (
        "a label as a key",
        "Action: get_weather\nAction Input: {\nAction: 1,\nAnswer: 2\n}\nObservation: y",
        "get_weather({\nAction: 1,\nAnswer: 2\n})",
    ),
    (
        "a label after a string without an end",
        "Action: get_weather\nAction Input: {\"city\": \"Par\nObservation: {\"temperature\": 30}\nAnswer: 30",
        "get_weather({\"city\": \"Par)",
    ),
    (
        "a comment that takes the rest",
        "Action: get_weather\nAction Input: {\"city\": \"Paris\" // the city}\nObservation: 30",
        "get_weather({\"city\": \"Paris\" // the city})",
    ),
    (
        "a comment with a line of its own",
        "Action: get_weather\nAction Input: {\"city\": \"Paris\" // the\n}\nNow I wait.",
        "get_weather({\"city\": \"Paris\" // the\n})",
    ),
    // Markup.
    ("stars before the input", "Action: get_weather\nAction Input: ** {\"a\":1}", "get_weather({\"a\":1})"),
    (
        "stars around the input",
        "**Action:** **get_weather**\n**Action Input:** **{\"a\":1}**",
        "get_weather({\"a\":1})",
    ),
    ("a list", "Action: get_weather\nAction Input:\n- {\"a\":1}", "get_weather({\"a\":1})"),
    ("a quotation", "> Action: get_weather\n> Action Input: {\"a\":1}", "get_weather({\"a\":1})"),
    ("damaged, with words after it", "Action: get_weather\nAction Input: {'a': 1,}\nI wait.", "get_weather({'a': 1,})"),
    // A remark.
    (
        "a remark in brackets",
        "Action: get_weather (look up the weather)\nAction Input: {\"a\":1}",
        "get_weather({\"a\":1})",
    ),
    ("a remark in wide brackets", "Action: 查天气（看看）\nAction Input: {\"a\":1}", "查天气({\"a\":1})"),
    ("a remark after a dash", "Action: get_weather - for Paris\nAction Input: {\"a\":1}", "get_weather({\"a\":1})"),
    ("a remark without an input", "Action: get_weather (look it up)", "get_weather()"),
    ("a remark after another word", "Action: fly (to Paris)\nAction Input: {}", "fly({})"),
    // Calls.
    ("a call over lines", "Action: get_weather({\n\"a\": 1\n})", "get_weather({\n\"a\": 1\n})"),
    (
        "a call with names",
        "Action: get_weather(city=\"Paris\", days=2)",
        "get_weather({\"city\":\"Paris\",\"days\":2})",
    ),
    (
        "a call with a number of many digits",
        "Action: get_weather(id=940011189922385512345678)",
        "get_weather({\"id\":940011189922385512345678})",
    ),
    (
        "a call with a number of many digits and the same input",
        "Action: get_weather(id=940011189922385512345678)\nAction Input: {\"id\": 940011189922385512345678}",
        "get_weather({\"id\": 940011189922385512345678})",
    ),
    ("a call in backticks", "Action: `get_weather(city='Paris')`", "get_weather({\"city\":\"Paris\"})"),
    ("a call of an unknown tool", "Action: fly(to=\"Paris\")", "fly({\"to\":\"Paris\"})"),
    ("a call and no input", "Action: get_weather({\"a\":1})\nAction Input:", "get_weather({\"a\":1})"),
    ("a call and the same input", "Action: get_weather(a=1)\nAction Input: {\"a\": 1}", "get_weather({\"a\": 1})"),
    ("a call and words after it", "Action: get_weather(city=\"Paris\")\nI wait.", "get_weather({\"city\":\"Paris\"})"),
    ("a remark and an input without its label", "Action: get_weather (it)\n{\"a\":1}", "get_weather({\"a\":1})"),
    ("a name and an object", "Action: get_weather {\"a\":1}", "get_weather({\"a\":1})"),
    ("an object with a name", "Action: {\"name\":\"get_weather\"}\nAction Input: {\"a\":1}", "get_weather({\"a\":1})"),
    ("an object, damaged", "Action: {'name':'get_weather','arguments':{'a':1}}", "get_weather({'a':1})"),
    // Without labels.
    ("an object", "{\"action\": \"get_weather\", \"action_input\": {\"a\":1}}", "get_weather({\"a\":1})"),
    ("an object of LangChain", "{\"name\": \"get_weather\", \"arguments\": {\"a\":1}}", "get_weather({\"a\":1})"),
    (
        "an object after words",
        "Thought: I look.\n```json\n{\"action\": \"get_weather\", \"action_input\": {\"a\":1}}\n```",
        "[I look.] get_weather({\"a\":1})",
    ),
    (
        "an object before an invented observation",
        "I look.\n{\"action\": \"get_weather\", \"action_input\": \"Paris\"}\nObservation: 30",
        "[I look.] get_weather(Paris)",
    ),
    ("an answer as an object", "{\"action\": \"Final Answer\", \"action_input\": \"It is sunny.\"}", "It is sunny."),
    ("an unknown tool as an object", "{\"action\": \"fly\", \"action_input\": {}}", "fly({})"),
    (
        "an object over lines with a label in it",
        "{\n\"action\": \"get_weather\",\n\"action_input\": {\"city\": \"Answer: x\"}\n}",
        "get_weather({\"city\": \"Answer: x\"})",
    ),
    (
        "an object, damaged, without labels",
        "{'action': 'get_weather', 'action_input': {'a': 1}}",
        "get_weather({'a': 1})",
    ),
    (
        "an object that is cut off",
        "{\"action\": \"get_weather\", \"action_input\": {\"a\": 1}",
        "get_weather({\"a\": 1)",
    ),
    (
        "a tag of function calling",
        "I look. <tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>",
        "[I look.] get_weather({})",
    ),
];

#[test]
fn every_form_with_one_reading_is_understood() {
    let read = CORPUS.iter().map(|(case, written, wanted)| (case, short(&read(written)), *wanted));
    let wrong: Vec<_> = read.filter(|(_, found, wanted)| found != wanted).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
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
