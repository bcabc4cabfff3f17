//! Which worker identities may serve a tool, and which changes of it wait for an operator.
//!
//! The first identity that registers a tool may serve it. It may change the tool, except that a laxer effect waits: attempts
//! would be repeated that were not. Another identity waits, also with the same specification: whoever serves a tool sees its
//! arguments.

use redial_proto::{ToolEffect, ToolSpec, WorkerIdentity, limits};
use redial_records::{Judgement, ToolOnRecord};

/// Judges the registration of a tool that is on record. With `accept_all` nothing waits.
pub fn judge(tool: &ToolOnRecord, spec: &ToolSpec, identity: &WorkerIdentity, accept_all: bool) -> Judgement {
    let reasons = reasons(tool, spec, identity);
    if reasons.is_empty() || accept_all {
        Judgement::Accepted { unasked: reasons }
    } else {
        Judgement::Waits { reasons }
    }
}

fn reasons(tool: &ToolOnRecord, spec: &ToolSpec, identity: &WorkerIdentity) -> Vec<String> {
    let may_serve = tool.identities.contains(identity);
    if may_serve && tool.accepted.as_ref() == Some(spec) {
        return Vec::new();
    }
    let changes = match &tool.spec {
        Some(old) if may_serve && laxness(spec.effect) <= laxness(old.effect) => Vec::new(),
        Some(old) if may_serve => vec![effect(old, spec)],
        Some(old) => differences(old, spec),
        None => vec!["this version of Redial cannot read the tool on record, and so cannot compare".to_owned()],
    };
    let stranger = (!may_serve).then(|| format!("worker identity {:?} may not serve it yet", identity.as_str()));
    stranger.into_iter().chain(changes).collect()
}

/// Lists what a specification changes, in words.
fn differences(old: &ToolSpec, new: &ToolSpec) -> Vec<String> {
    if old == new {
        return vec!["its specification is the one on record".to_owned()];
    }
    let mut changes = Vec::new();
    if old.effect != new.effect {
        changes.push(effect(old, new));
    }
    if old.pool != new.pool {
        let (old, new) = (limits::shorten(&old.pool, 100), limits::shorten(&new.pool, 100));
        changes.push(format!("its pool is {new:?} instead of {old:?}"));
    }
    let fields = [
        ("the schema of its arguments", old.parameters != new.parameters),
        ("its description", old.description != new.description),
        ("its timeout", old.timeout_ms != new.timeout_ms),
        ("when it is retried", (old.retry, old.retry_budget) != (new.retry, new.retry_budget)),
        (
            "how its calls are treated (polling, sequential, repairs)",
            (old.polling, old.sequential, old.repairs) != (new.polling, new.sequential, new.repairs),
        ),
    ];
    changes.extend(fields.iter().filter(|(_, differs)| *differs).map(|(field, _)| format!("it changes {field}")));
    changes
}

fn effect(old: &ToolSpec, new: &ToolSpec) -> String {
    format!("its effect is {} instead of {}", new.effect, old.effect)
}

/// Ranks how freely attempts of calls with this effect are repeated.
const fn laxness(effect: ToolEffect) -> u8 {
    match effect {
        ToolEffect::Unsafe => 0,
        ToolEffect::Keyed => 1,
        ToolEffect::Idempotent => 2,
        ToolEffect::Read => 3,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn identity(name: &str) -> WorkerIdentity {
        name.parse().unwrap()
    }

    fn on_record(identities: &[&str]) -> ToolOnRecord {
        let spec = ToolSpec { effect: ToolEffect::Keyed, ..ToolSpec::named("pay") };
        let identities = identities.iter().map(|name| identity(name)).collect();
        ToolOnRecord { spec: Some(spec), accepted: None, identities }
    }

    fn spec(effect: ToolEffect) -> ToolSpec {
        ToolSpec { effect, ..ToolSpec::named("pay") }
    }

    #[test]
    fn who_registers_what_decides_whether_it_waits() {
        let none: [&str; 0] = [];
        let (keyed, read, careful) = (spec(ToolEffect::Keyed), spec(ToolEffect::Read), spec(ToolEffect::Unsafe));
        let laxer = ["its effect is read instead of keyed"].as_slice();
        let stranger = r#"worker identity "b" may not serve it yet"#;
        let looser = ToolSpec { parameters: json!(true), ..keyed.clone() };
        let rows: [(&[&str], &str, &ToolSpec, &[&str]); 8] = [
            (&["a"], "a", &keyed, &none),
            (&["a"], "a", &looser, &none),
            (&["a"], "b", &looser, &[stranger, "it changes the schema of its arguments"]),
            (&["a"], "a", &careful, &none),
            (&["a"], "a", &read, laxer),
            (&["a"], "b", &keyed, &[stranger, "its specification is the one on record"]),
            (&["a"], "b", &careful, &[stranger, "its effect is unsafe instead of keyed"]),
            (&["a", "b"], "b", &careful, &none),
        ];
        for (identities, who, spec, wanted) in rows {
            let tool = on_record(identities);
            let found = judge(&tool, spec, &identity(who), false);
            match found {
                Judgement::Accepted { unasked } => assert!(wanted.is_empty() && unasked.is_empty(), "{who} {spec:?}"),
                Judgement::Waits { reasons } => assert_eq!(reasons, wanted, "{who} {spec:?}"),
            }
            let unasked = wanted.iter().map(|&reason| reason.to_owned()).collect();
            assert_eq!(judge(&tool, spec, &identity(who), true), Judgement::Accepted { unasked });
        }
    }

    #[test]
    fn what_an_operator_accepted_is_not_asked_about_again_and_what_cannot_be_read_is() {
        let (keyed, weaker, idempotent) =
            (spec(ToolEffect::Keyed), spec(ToolEffect::Read), spec(ToolEffect::Idempotent));
        let accepted = ToolOnRecord { accepted: Some(weaker.clone()), ..on_record(&["a"]) };
        let unreadable = ToolOnRecord { spec: None, ..on_record(&["a"]) };
        for (tool, spec, who, waits) in [
            (&accepted, &weaker, "a", false),
            (&accepted, &idempotent, "a", true),
            (&accepted, &weaker, "b", true),
            (&unreadable, &keyed, "a", true),
        ] {
            let judgement = judge(tool, spec, &identity(who), false);
            assert_eq!(matches!(judgement, Judgement::Waits { .. }), waits, "{who} {spec:?}");
        }
    }

    #[test]
    fn an_identity_that_waits_says_all_that_it_changes() {
        let new = ToolSpec {
            description: "other".to_owned(),
            parameters: json!({"type": "object", "required": ["city"]}),
            pool: "fast".to_owned(),
            timeout_ms: 1,
            polling: true,
            ..spec(ToolEffect::Read)
        };
        let wanted = [
            r#"worker identity "b" may not serve it yet"#,
            "its effect is read instead of keyed",
            r#"its pool is "fast" instead of "default""#,
            "it changes the schema of its arguments",
            "it changes its description",
            "it changes its timeout",
            "it changes how its calls are treated (polling, sequential, repairs)",
        ];
        assert_eq!(reasons(&on_record(&["a"]), &new, &identity("b")), wanted);
    }
}
