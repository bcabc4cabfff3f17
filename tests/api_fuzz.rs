//! The OpenAPI document is true: Schemathesis finds no answer that it does not declare, and a generated client works.
//!
//! `REDIAL_API_FUZZ` has arguments for Schemathesis, for more than the short run of the suite (`./dev api-fuzz`).

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, too")]

#[path = "api_fuzz/fixture.rs"]
mod fixture;
#[path = "shared/python.rs"]
mod python;

use std::path::{Path, PathBuf};

use redial_proto::UserRole;
use tokio::process::Command;

use fixture::{CANARY, Fixture};

/// Few requests for each operation and each role; the phase `coverage` alone has 2,000.
const SHORT: &str = "--phases fuzzing --max-examples 2";
/// A server error, an undeclared status, an undeclared type, a body or a header against its schema, another tenant's data. What
/// the schemas allow is not always accepted (a filter needs one field), so that is not checked.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,other_tenants_are_invisible";
/// The feed of a tenant never ends, so a client that reads answers whole cannot ask for it. The events of a call and of a task end
/// with it, and stay in: what is asked for has ended.
const ENDLESS: &str = "follow_all";

fn folder() -> PathBuf {
    python::repository().join("tests/api_fuzz")
}

fn document() -> PathBuf {
    python::repository().join("services/gateway/openapi.json")
}

/// Runs a program that must succeed; what it printed.
async fn run(command: &mut Command, what: &str) -> String {
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").kill_on_drop(true).output().await.unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {said}");
    said
}

fn schemathesis(python: &Path, fixture: &Fixture, home: &Path) -> Command {
    let mut command = Command::new(python.with_file_name("st"));
    let arguments = std::env::var("REDIAL_API_FUZZ").unwrap_or_else(|_| SHORT.to_owned());
    command.arg("run").arg(document()).args(["--url", &fixture.gateway.url, "--checks", CHECKS]);
    command.args(["--exclude-operation-id", ENDLESS, "--continue-on-failure", "--no-shrink", "--no-color"]);
    command.args(["--warnings", "off", "--request-timeout", "90"]).args(arguments.split_whitespace());
    command.env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONPATH", folder()).current_dir(home);
    command.env("CANARY", CANARY).env("IDS", fixture.ids.to_string());
    command
}

#[tokio::test]
async fn whoever_asks_gets_only_answers_that_are_declared_and_their_own() {
    let Some(python) = python::find() else { return };
    let fixture = Fixture::start().await;
    let home = tempfile::tempdir().unwrap();
    let roles = UserRole::ALL.iter().map(|role| Some(vec![*role]));
    for roles in roles.chain([Some(UserRole::ALL.to_vec()), None]) {
        let mut command = schemathesis(&python, &fixture, home.path());
        if let Some(roles) = &roles {
            let token = fixture.token(roles).await;
            command.args(["--header", &format!("Authorization: Bearer {token}")]);
        }
        let said = run(&mut command, &format!("a token with the roles {roles:?}")).await;
        assert!(said.contains("passed") || said.contains("generated"), "{said}");
    }
    fixture.finish().await;
}

#[tokio::test]
async fn a_generated_client_submits_a_call_and_waits_for_it() {
    let Some(python) = python::find() else { return };
    let fixture = Fixture::start().await;
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("config.yml");
    std::fs::write(&config, "post_hooks: []\n").unwrap();
    let mut generate = Command::new(python.with_file_name("openapi-python-client"));
    generate.args(["generate", "--meta", "none", "--output-path", "redial_generated", "--path"]).arg(document());
    run(generate.arg("--config").arg(config).current_dir(home.path()), "the generator").await;
    let token = fixture.token(&UserRole::ALL).await;
    let mut client = Command::new(&python);
    client.arg(folder().join("generated.py")).env("PYTHONPATH", home.path());
    let said = run(client.env("URL", &fixture.gateway.url).env("TOKEN", token), "the client").await;
    assert!(said.contains("the generated client works"), "{said}");
    fixture.finish().await;
}
