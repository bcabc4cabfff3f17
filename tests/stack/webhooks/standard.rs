//! Python's library of Standard Webhooks, which verifies what a receiver got.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use redial_test_stack::Request;
use serde_json::json;

use crate::python;

const VERIFY: &str = "
import json, sys
from standardwebhooks import Webhook, WebhookVerificationError
given = json.load(sys.stdin)
try:
    Webhook(given['secret']).verify(given['body'], given['headers'])
    print('verified')
except WebhookVerificationError as error:
    print('refused', error)
";

/// Whether the library takes a request for one that was signed with this secret; `None` without the library.
pub(crate) fn verifies(secret: &str, request: &Request) -> Option<bool> {
    let python = python::find()?;
    let headers: serde_json::Map<_, _> =
        request.headers.iter().map(|(name, value)| (name.to_lowercase(), json!(value))).collect();
    let body = String::from_utf8(request.body.clone()).unwrap();
    let given = json!({ "secret": secret, "headers": headers, "body": body }).to_string();
    let mut child =
        Command::new(&python).args(["-c", VERIFY]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(given.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && (said.starts_with("verified") || said.starts_with("refused")), "{said}");
    Some(said.starts_with("verified"))
}
