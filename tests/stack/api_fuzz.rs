//! The OpenAPI document is true: Schemathesis finds no answer that it does not declare, and a generated client works.
//!
//! `REDIAL_API_FUZZ` has arguments for Schemathesis, for more than the short run of the night (`./dev api-fuzz`).

mod fixture;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use redial_proto::UserRole;
use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;

use self::fixture::{CANARY, Fixture};
use crate::python;

/// Arguments for Schemathesis.
const ARGUMENTS: &str = "REDIAL_API_FUZZ";
/// Few requests for each operation and each role; the phase `coverage` alone has 2,000. With all roles there are enough to send
/// an id of the other tenant wherever one fits.
const SHORT: &str = "--phases fuzzing --max-examples";
/// A server error, an undeclared status, an undeclared type, a body or a header against its schema, another tenant's data. What
/// the schemas allow is not always accepted (a filter needs one field), so that is not checked.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,other_tenants_are_invisible";
/// The feed of a tenant never ends, so a client that reads answers whole cannot ask for it. The events of a call and of a task end
/// with it, and stay in: what is asked for has ended.
const ENDLESS: &str = "follow_all";

/// Where ids of another tenant are sent: the part of the request, and the field.
const FOREIGN_IDS: [(&str, &str); 11] = [
    ("body", "call_id"),
    ("body", "calls"),
    ("body", "conversation"),
    ("body", "previous_response_id"),
    ("body", "redrive"),
    ("body", "webhook"),
    ("path", "conversation"),
    ("path", "id"),
    ("query", "conversation"),
    ("query", "erasure"),
    ("query", "task"),
];
/// The operations with a name in the path that all tenants share.
const OF_ALL_TENANTS: [&str; 6] =
    ["get_error_page", "get_agent", "get_model", "get_tool", "check_arguments", "list_tool_pointers"];

fn folder() -> PathBuf {
    python::repository().join("tests/stack/api_fuzz")
}

fn document() -> PathBuf {
    python::repository().join("services/gateway/openapi.json")
}

/// Whether every operation is asked, and few times: arguments can leave some out.
fn is_short() -> bool {
    std::env::var_os(ARGUMENTS).is_none()
}

/// Runs a program that must succeed; what it printed.
async fn run(command: &mut Command, what: &str) -> String {
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").kill_on_drop(true).output().await.unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {said}");
    said
}

/// What the hooks of Schemathesis report of a run.
#[derive(Deserialize)]
struct Report {
    /// By operation: how often each status came.
    statuses: BTreeMap<String, BTreeMap<String, u32>>,
    /// By operation: part of the request and field in which ids of the other tenant were sent.
    foreign: BTreeMap<String, Vec<(String, String)>>,
}

/// An operation of the document.
struct Operation {
    name: String,
    path: String,
    wants_role: bool,
}

fn operations() -> Vec<Operation> {
    let document: Value = serde_json::from_slice(&std::fs::read(document()).unwrap()).unwrap();
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        operations.extend(methods.as_object().unwrap().values().map(|one| Operation {
            name: one["operationId"].as_str().unwrap().to_owned(),
            path: path.clone(),
            wants_role: !one["security"].is_null(),
        }));
    }
    operations
}

impl Report {
    /// Operation, status and number of the answers of addresses that want a role.
    fn of_roles(&self) -> impl Iterator<Item = (&str, &str, u32)> {
        let wanted: BTreeSet<_> = operations().into_iter().filter(|one| one.wants_role).map(|one| one.name).collect();
        let statuses = self.statuses.iter().filter(move |(name, _)| wanted.contains(*name));
        statuses.flat_map(|(name, all)| all.iter().map(|(status, count)| (&**name, &**status, *count)))
    }

    fn has_foreign_ids_everywhere(&self) {
        let sent: BTreeSet<_> = self.foreign.values().flatten().map(|(part, field)| (&**part, &**field)).collect();
        assert_eq!(sent, FOREIGN_IDS.into());
        let without =
            operations().into_iter().filter(|one| one.path.contains('{') && !self.foreign.contains_key(&one.name));
        let without: Vec<_> = without.map(|one| one.name).collect();
        assert_eq!(without, OF_ALL_TENANTS, "no id of another tenant was sent");
    }
}

/// Whoever asks: the roles of a token; none without one.
async fn ask(python: &Path, fixture: &Fixture, roles: &[UserRole]) -> Report {
    let home = tempfile::tempdir().unwrap();
    let (report, own) = (home.path().join("report.json"), fixture.own().await);
    let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    let mut command = Command::new(python.with_file_name("st"));
    command.arg("run").arg(document()).args(["--url", &fixture.gateway.url, "--checks", CHECKS]);
    command.args("--continue-on-failure --no-shrink --no-color --warnings off --request-timeout 90".split(' '));
    if !roles.is_empty() {
        let token = fixture.token(roles).await;
        command.args(["--header", &format!("Authorization: Bearer {token}"), "--exclude-operation-id", ENDLESS]);
    }
    let examples = if roles == UserRole::ALL { "8" } else { "2" };
    let arguments = std::env::var(ARGUMENTS).unwrap_or_else(|_| format!("{SHORT} {examples}"));
    command.args(arguments.split_whitespace());
    command.env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONPATH", folder()).current_dir(home.path());
    command.env("CANARY", CANARY).env("OWN", own.to_string()).env("FOREIGN", fixture.foreign.to_string());
    command.env("ROLES", names.join(" ")).env("REPORT", &report);
    let said = run(&mut command, &format!("a token with the roles {names:?}")).await;
    assert!(said.contains("passed") || said.contains("generated"), "{said}");
    serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap()
}

#[tokio::test]
#[ignore = "nightly: Schemathesis invents requests"]
async fn whoever_asks_gets_only_answers_that_are_declared_and_their_own() {
    let Some(python) = python::find() else { return };
    let fixture = Fixture::start().await;
    let each = UserRole::ALL.iter().map(std::slice::from_ref);
    for roles in each.chain([UserRole::ALL.as_slice()]) {
        let report = ask(&python, &fixture, roles).await;
        let good: u32 = report.of_roles().filter(|(_, status, _)| status.starts_with('2')).map(|one| one.2).sum();
        let refused: Vec<_> = report.of_roles().filter(|(_, status, _)| *status == "401").collect();
        assert!(good > 0 && refused.is_empty(), "{roles:?}: {good} good answers; refused: {refused:?}");
        if roles == UserRole::ALL && is_short() {
            report.has_foreign_ids_everywhere();
        }
    }
    let report = ask(&python, &fixture, &[]).await;
    let let_in: Vec<_> = report.of_roles().filter(|(_, status, _)| *status != "401").collect();
    assert!(let_in.is_empty(), "without a token: {let_in:?}");
    let not_asked = operations().into_iter().filter(|one| !report.statuses.contains_key(&one.name));
    assert!(!is_short() || not_asked.count() == 0, "without a token: {:?}", report.statuses.keys());
    fixture.finish().await;
}

#[tokio::test]
#[ignore = "nightly: Schemathesis invents requests"]
async fn a_generated_client_submits_a_call_and_waits_for_it() {
    let Some(python) = python::find() else { return };
    let fixture = Fixture::start().await;
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("config.yml");
    std::fs::write(&config, "post_hooks: []\n").unwrap();
    let mut generate = Command::new(python.with_file_name("openapi-python-client"));
    generate.args(["generate", "--meta", "none", "--output-path", "redial_generated", "--path"]).arg(document());
    let said = run(generate.arg("--config").arg(config).current_dir(home.path()), "the generator").await;
    assert!(!said.contains("Endpoint will not be generated"), "{said}");
    let generated = home.path().join("redial_generated");
    run(Command::new(&python).args(["-m", "compileall", "-q"]).arg(&generated), "the generated client").await;
    let token = fixture.token(&UserRole::ALL).await;
    let mut client = Command::new(&python);
    client.arg(folder().join("generated.py")).env("PYTHONPATH", home.path());
    let said = run(client.env("URL", &fixture.gateway.url).env("TOKEN", token), "the client").await;
    assert!(said.contains("the generated client works"), "{said}");
    fixture.finish().await;
}
