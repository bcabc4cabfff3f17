//! The bytes of hostile messages.

use redial_proto::{
    ANY_POOL, Tenant, User, UserRole, WorkerIdentity,
    subjects::{self, ControlVerb, Intake, Verb},
};
use serde_json::{Value, json};

/// Whom clients and workers may ask. Each of them must answer.
pub(super) fn requests() -> Vec<String> {
    let (tenant, user) = (Tenant::default(), User::default());
    let of_user = Verb::ALL.iter().map(|&verb| subjects::api(&tenant, &user, verb.roles()[0], verb));
    let of_worker = ControlVerb::ALL.iter().map(|&verb| subjects::control(&hostile(), ANY_POOL, verb));
    of_user.chain(of_worker).collect()
}

/// Whether a payload is a message there after all: whoever asks for a list needs to say nothing.
pub(super) fn is_valid(subject: &str, payload: &[u8]) -> bool {
    let lists = [Verb::ToolList, Verb::AgentList].map(Verb::name);
    payload == b"{}" && lists.iter().any(|list| subject.ends_with(list))
}

/// Where they may publish without an answer, and whether a row of `dead_letters` keeps what is rejected there.
pub(super) fn publications() -> [(String, bool); 4] {
    let deltas = "redial.events.default.tasks.00000000-0000-0000-0000-000000000000.delta";
    [
        (intake(Intake::Calls), true),
        (intake(Intake::Tasks), true),
        (subjects::results(&hostile()), true),
        (deltas.to_owned(), false),
    ]
}

/// The intake stream for the usual user.
pub(super) fn intake(what: Intake) -> String {
    subjects::intake(&Tenant::default(), &User::default(), UserRole::Submit, what)
}

fn hostile() -> WorkerIdentity {
    WorkerIdentity::of_name("hostile")
}

/// The longest string: the message stays below the limit of the server (1 MiB).
const HUGE: usize = 900 * 1024;

/// None of these is a message of any subject.
pub(super) fn payloads() -> Vec<Vec<u8>> {
    let text = |text: &str| text.as_bytes().to_vec();
    let huge = "x".repeat(HUGE);
    vec![
        Vec::new(),
        vec![0; 64],
        (0..=255).collect(),
        text("null"),
        text("[]"),
        text("{}"),
        text("\"redial\""),
        text("{\"tool\":\"read\",\"argu"),
        text("{\"tool\":\"read\",\"arguments\":{\"n\":1e999999999}}}"),
        text(
            "{\"tool\":\"re\\u0000ad\",\"arguments\":{},\"key\":\"\\u0000\",\"call\":\"\\u0000\",\"worker\":\"\\u0000\"}",
        ),
        b"{\"tool\":\"\xff\xfe\",\"arguments\":{}}".to_vec(),
        text("{\"calls\":5,\"jobs\":{},\"running\":\"\",\"tools\":0,\"task\":-1}"),
        "[".repeat(100_000).into_bytes(),
        "{\"a\":".repeat(100_000).into_bytes(),
        huge.clone().into_bytes(),
        format!("{{\"{huge}\":1}}").into_bytes(),
        format!("{{\"tool\":\"{huge}\",\"call\":\"{huge:.9}\",\"worker\":[]}}").into_bytes(),
    ]
}

/// Values of the header with the trace context.
pub(super) fn traceparents() -> [String; 6] {
    [
        String::new(),
        "00-".to_owned() + &"f".repeat(60_000),
        "00-00000000000000000000000000000000-0000000000000000-00".to_owned(),
        "zz-😀-\u{0}\u{1}\u{7f}-\\".to_owned(),
        "-".repeat(1_000),
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more".to_owned(),
    ]
}

/// Valid, and not usual: NULs in an answer.
pub(super) fn odd_orders() -> Value {
    json!({"output": "{\"nul\":\"\\u0000\",\"lone\":\"\\ud800\",\"\\u0000\":1e308}"})
}

/// A batch of so many submissions that cannot be read, each of about so many bytes.
pub(super) fn batch(entries: usize, bytes: usize) -> String {
    let entry = |n: usize| {
        let wrong =
            [r#""tool":7"#, r#""tool":"read""#, r#""tool":"read","arguments":{},"unknown":1"#, r#""tool":null"#];
        let begin = format!("{{{},\"key\":\"rejected-{n}-", wrong[n % wrong.len()]);
        let filling = "z".repeat(bytes.saturating_sub(begin.len() + 3));
        format!("{begin}{filling}\"}}")
    };
    format!("{{\"calls\":[{}]}}", (0..entries).map(entry).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use redial_proto::{Submission, SubmitBatch, limits::MAX_MESSAGE};

    use super::*;

    #[test]
    fn a_batch_is_as_large_as_a_message_can_be_and_none_of_it_can_be_read() {
        let text = batch(1_000, 980);
        assert!((900_000..MAX_MESSAGE).contains(&text.len()), "{}", text.len());
        let batch: SubmitBatch = serde_json::from_str(&text).unwrap();
        assert_eq!(batch.calls.len(), 1_000);
        assert!(batch.calls.iter().all(|call| serde_json::from_str::<Submission>(call.get()).is_err()));
    }

    #[test]
    fn no_hostile_message_is_a_submission() {
        for payload in payloads() {
            assert!(payload.len() < MAX_MESSAGE, "{}", payload.len());
            assert!(serde_json::from_slice::<SubmitBatch>(&payload).is_err());
            // What can be read is rejected for its control characters.
            let read = serde_json::from_slice::<Submission>(&payload);
            assert!(read.is_err() || read.is_ok_and(|call| call.tool.contains(['\0', 'x'])));
        }
    }
}
