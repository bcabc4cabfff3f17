//! ReAct over a chat endpoint of a model that knows nothing of tools: system first only, then user and assistant by
//! turns, plain texts.

use serde_json::Value;

use super::{Faults, alternates};

/// What is wrong with a request.
pub(crate) fn faults(body: &Value) -> Vec<String> {
    let mut faults = Faults::default();
    faults.text(&body["model"], "model");
    for key in ["tools", "tool_choice", "parallel_tool_calls", "functions"] {
        faults.check(body.get(key).is_none(), key, "the model knows no tools");
    }
    let Some(messages) = body["messages"].as_array().filter(|messages| !messages.is_empty()) else {
        faults.add("messages", "a list that is not empty is needed");
        return faults.0;
    };
    for (n, message) in messages.iter().enumerate() {
        let place = format!("messages[{n}]");
        match message.as_object() {
            Some(object) => faults.only(object, &["role", "content"], &place),
            None => faults.add(&place, "it is no object"),
        }
        faults.text(&message["content"], &place);
    }
    let mut roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    if roles[0] == "system" {
        roles.remove(0);
    }
    alternates(&mut faults, &roles);
    faults.0
}

mod tests {
    use serde_json::json;

    use super::{
        super::mutations::{is_refused, put, remove},
        *,
    };

    fn good() -> Value {
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "You have these tools: …"},
                {"role": "user", "content": "weather?"},
                {"role": "assistant", "content": "Action: get_weather\nAction Input: {}"},
                {"role": "user", "content": "Observation: rain"},
            ],
            "stop": ["Observation:"],
        })
    }

    #[test]
    fn one_prompt_is_a_conversation() {
        assert_eq!(
            faults(&json!({"model": "m", "messages": [{"role": "user", "content": "x"}]})),
            Vec::<String>::new()
        );
    }

    #[test]
    fn each_fault_is_found() {
        for (pointer, value, wanted) in [
            ("/messages", json!({}), "messages: a list that is not empty"),
            ("/messages/0/content", json!(""), "messages[0]: the text is empty"),
            ("/messages/1/role", json!("system"), "the role is \"system\""),
            ("/messages/2/tool_calls", json!([]), "\"tool_calls\" is not allowed here"),
            ("/messages/2/content", json!(null), "messages[2]: a text is needed"),
            ("/messages/2/role", json!("user"), "the role is \"user\"; \"assistant\" has its turn"),
            ("/messages/3/role", json!("tool"), "the role is \"tool\"; \"user\" has its turn"),
            ("/messages/3/role", json!("assistant"), "messages: the last one is not the user's"),
            ("/tools", json!([{}]), "tools: the model knows no tools"),
        ] {
            is_refused(&good(), |body| put(body, pointer, value), wanted, faults);
        }
        is_refused(
            &good(),
            |body| remove(body, "/messages/1"),
            "the role is \"assistant\"; \"user\" has its turn",
            faults,
        );
        is_refused(&good(), |body| remove(body, "/messages/3"), "the last one is not the user's", faults);
    }
}
