//! What went over the wire between a worker and the model's server, read without the code that it checks.

use serde_json::Value;

/// One request and its response.
pub(crate) struct Exchange {
    /// The body of the request.
    pub(crate) request: Value,
    /// Everything that the model wrote: texts, names and arguments, in order.
    pub(crate) written: String,
}

impl Exchange {
    /// From a line of the server's file.
    pub(crate) fn parse(line: &str) -> Self {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| line[key].as_str().unwrap();
        Self { request: serde_json::from_str(text("request")).unwrap(), written: written(text("response")) }
    }
}

/// The pieces of a stream, or a whole response, in one text.
fn written(response: &str) -> String {
    let pieces = response.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut bodies: Vec<Value> = pieces.filter_map(|piece| serde_json::from_str(piece).ok()).collect();
    bodies.extend(serde_json::from_str::<Value>(response));
    let mut all = String::new();
    for choice in bodies.iter().flat_map(|body| body["choices"].as_array().into_iter().flatten()) {
        for message in [&choice["delta"], &choice["message"]] {
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            let functions = calls.flat_map(|call| [&call["function"]["name"], &call["function"]["arguments"]]);
            let texts = [&message["reasoning_content"], &message["content"]].into_iter().chain(functions);
            all.extend(texts.filter_map(Value::as_str));
        }
    }
    all
}
