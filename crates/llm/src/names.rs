//! Tool names for providers that accept only ASCII letters, digits, `_` and `-`, at most 64 characters.

use std::collections::{HashMap, HashSet};

use redial_proto::{ToolOffer, TurnRequest};

use crate::ids::fingerprint;

/// The tool names of one request, and the aliases under which they are sent.
pub(crate) struct Names {
    sent: HashMap<String, String>,
    own: HashMap<String, String>,
}

impl Names {
    /// Collects the names of the offered tools, and of tools that only the history contains.
    pub(crate) fn of(request: &TurnRequest) -> Self {
        let history = request.messages.iter().flat_map(|message| &message.calls).map(|call| call.tool.as_str());
        let offered = request.tools.iter().map(|tool| tool.name.as_str());
        let all: Vec<&str> = offered.chain(history).collect();
        // A valid name is never replaced, so all valid names must be known before an alias is chosen.
        let mut used: HashSet<String> =
            all.iter().filter(|name| is_valid(name)).map(|name| (*name).to_owned()).collect();
        let mut names = Self { sent: HashMap::new(), own: HashMap::new() };
        for name in all.into_iter().filter(|name| !is_valid(name)) {
            if !names.sent.contains_key(name) {
                let alias = alias(name, &used);
                used.insert(alias.clone());
                names.own.insert(alias.clone(), name.to_owned());
                names.sent.insert(name.to_owned(), alias);
            }
        }
        names
    }

    /// Returns the name under which a tool is sent.
    pub(crate) fn sent<'a>(&'a self, name: &'a str) -> &'a str {
        self.sent.get(name).map_or(name, String::as_str)
    }

    /// Returns the tool's own name for the name that the model wrote; an unknown name stays unchanged.
    pub(crate) fn own(&self, sent: &str) -> String {
        self.own.get(sent).map_or(sent, String::as_str).to_owned()
    }

    /// Returns the description that the model reads. Feedback uses own names, so the description of a tool with an
    /// alias begins with its own name.
    pub(crate) fn description(&self, tool: &ToolOffer) -> String {
        if self.sent.contains_key(&tool.name) {
            return format!("{}: {}", tool.name, tool.description).trim_end_matches([' ', ':']).to_owned();
        }
        tool.description.clone()
    }
}

fn is_valid(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// Makes an alias of the valid characters of the name and a fingerprint of it: `订机票` becomes `tool_…`, `mcp.read file`
/// becomes `mcp_read_file_…`.
fn alias(name: &str, used: &HashSet<String>) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let kept: String = name.chars().map(fit).take(48).collect();
    let kept = kept.trim_matches('_');
    let kept = if kept.is_empty() { "tool" } else { kept };
    let candidates = (0_u64..).map(|salt| {
        let salted = if salt == 0 { name.to_owned() } else { format!("{salt} {name}") };
        format!("{kept}_{}", fingerprint(&salted, 8))
    });
    let mut free = candidates.filter(|alias| !used.contains(alias));
    free.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use redial_proto::{Message, MessageCall, Role, TaskId};

    use super::*;

    fn request(offered: &[String], called: &[String]) -> TurnRequest {
        let tool = |name: &String| serde_json::from_value(serde_json::json!({"name": name, "parameters": {}})).unwrap();
        let call = |name: &String| MessageCall { id: "c".into(), tool: name.clone(), arguments: "{}".into() };
        let calls = called.iter().map(call).collect();
        TurnRequest {
            messages: vec![Message { calls, ..Message::text(Role::Assistant, "") }],
            tools: offered.iter().map(tool).collect(),
            ..crate::transcript::tests::request(TaskId::generate())
        }
    }

    #[test]
    fn valid_names_stay_and_aliases_are_reversible() {
        let names =
            Names::of(&request(&["get_weather".into(), "订机票".into()], &["mcp.read file".into(), String::new()]));
        assert_eq!(names.sent("get_weather"), "get_weather");
        let alias = names.sent("订机票");
        assert!(alias.starts_with("tool_") && names.own(alias) == "订机票", "{alias}");
        assert!(names.sent("mcp.read file").starts_with("mcp_read_file_"));
        assert!(is_valid(names.sent("")));
        assert_eq!(names.own("never_heard_of"), "never_heard_of");
    }

    proptest! {
        #[test]
        fn sent_names_are_valid_and_reversible(offered in proptest::collection::vec("[a-c_. 订票]{0,3}", 0..12),
                                   called in proptest::collection::vec("\\PC{0,80}", 0..6)) {
            let names = Names::of(&request(&offered, &called));
            let all: HashSet<&String> = offered.iter().chain(&called).collect();
            let sent: HashSet<&str> = all.iter().map(|name| names.sent(name)).collect();
            prop_assert_eq!(sent.len(), all.len());
            for name in all {
                prop_assert!(is_valid(names.sent(name)));
                prop_assert_eq!(&names.own(names.sent(name)), name);
            }
        }
    }
}
