//! `redial nats-config` and `redial env`: outputs and exit codes.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::Value;

use super::redial;

const ACCESS: &str = "\
[dispatcher]
password = \"$D\"
[tenants.acme.users.alice]
roles = [\"read\"]
password = \"$ALICE\"
[workers.tools]
pools = [\"default\"]
password = \"plain words\"
";

#[tokio::test]
async fn the_configuration_is_written_checked_and_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let run = async |arguments: &[&str]| redial(folder.path(), &[], &[&["nats-config"], arguments].concat()).await;
    run(&[]).await.failed(2, &["access.toml: the access file cannot be read"]);
    fs::write(folder.path().join("access.toml"), ACCESS).unwrap();
    let printed = run(&[]).await;
    assert_eq!(printed.code, 0, "{}", printed.err);
    let warning = "warning: access.toml:8:12: worker \"tools\": the password is written";
    assert!(printed.err.starts_with(warning), "{}", printed.err);
    let old = run(&["--check", "--output", "users.conf"]).await;
    old.failed(1, &["run redial nats-config --access access.toml --output users.conf"]);
    let written = run(&["--output", "users.conf"]).await;
    assert!(written.code == 0 && written.err.contains("a second time if a user or a worker is new"), "{}", written.err);
    let file = folder.path().join("users.conf");
    assert_eq!(fs::read_to_string(&file).unwrap(), printed.out);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o007, 0, "it may contain passwords");
    assert_eq!(run(&["--check", "--output", "users.conf"]).await.code, 0);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).unwrap();
    assert_eq!(run(&["--output", "users.conf"]).await.code, 0);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o604, "a reader of the old one can read it");

    fs::write(folder.path().join("access.toml"), ACCESS.replace("\"read\"", "\"reed\"").replace("pools", "pool"))
        .unwrap();
    for arguments in [&["--check"][..], &["--output", "users.conf"]] {
        let reed = "access.toml:4:10: user \"acme.alice\": unknown value \"reed\"; did you mean";
        run(arguments).await.failed(2, &[reed, "did you mean \"pools\"?", "error: 2 problems"]);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), printed.out, "a wrong file changes nothing");
}

#[tokio::test]
async fn an_environment_is_printed_for_whom_the_file_names() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("access.toml"), ACCESS).unwrap();
    let run = async |environment: &[(&str, &str)], arguments: &[&str]| {
        redial(folder.path(), environment, &[&["env"], arguments].concat()).await
    };
    let nobody = run(&[], &[]).await;
    assert_eq!((nobody.code, nobody.out.as_str()), (2, "false\n"), "`eval` fails, too");
    assert!(nobody.err.contains("no `redial dev` runs in this folder; start one, or say whom"), "{}", nobody.err);
    let unset = run(&[], &["--user", "acme.alice"]).await;
    assert_eq!((unset.code, unset.out.as_str()), (1, "false\n"));
    assert!(unset.err.contains("set ALICE to it in the environment"), "{}", unset.err);
    assert_eq!(run(&[], &["--user", "acme.bob"]).await.code, 2);
    let set = [("ALICE", "it's $1"), ("REDIAL_NATS_URL", "tls://other:secret@nats.example.com:4222")];
    let json = run(&set, &["--user", "acme.alice", "--json"]).await;
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["REDIAL_NATS_URL"], "tls://acme.alice:it%27s%20%241@nats.example.com:4222");
    let worker = run(&[], &["--worker", "tools", "--server", "nats:4333"]).await.out;
    assert!(worker.contains("export REDIAL_NATS_URL=nats://worker.tools:plain%20words@nats:4333\n"), "{worker}");
}

#[tokio::test]
async fn a_broken_access_file_stops_each_role_that_reads_it_before_it_connects() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("access.toml"), ACCESS.replace("\"read\"", "\"reed\"")).unwrap();
    // Nothing listens there.
    let servers = [("REDIAL_NATS_URL", "nats://127.0.0.1:1"), ("REDIAL_DATABASE_URL", "postgres://127.0.0.1:1/redial")];
    let with_variable = [&servers[..], &[("REDIAL_ACCESS", "access.toml")]].concat();
    for (role, environment) in [
        (&["dispatcher", "--access", "access.toml"][..], &servers[..]),
        (&["dispatcher"], &with_variable),
        (&["gateway"], &with_variable),
        (&["dev", "--check", "--access", "access.toml"], &servers),
    ] {
        let run = redial(folder.path(), environment, role).await;
        let wanted = "error: access.toml:4:10: user \"acme.alice\": unknown value \"reed\"; did you mean \"read\"?";
        assert!(run.code == 2 && run.err.starts_with(wanted), "{role:?}: {} {}", run.code, run.err);
    }
}
