//! Postgres as a process: start, crash, restart, refusals. The tests of the store cover SQL.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use redial_servers::{Postgres, PostgresConfig, Server as _, ServerError};
use tempfile::TempDir;

/// Makes a folder that is open to the user that Postgres runs as when the tests run as root.
fn open_folder() -> TempDir {
    let temp = tempfile::tempdir().unwrap();
    fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o711)).unwrap();
    temp
}

fn config(temp: &TempDir) -> PostgresConfig {
    PostgresConfig::new(temp.path().join("postgres")).setting("fsync", "off")
}

/// Sends a start-up message (protocol 3.0) and returns the kind of the answer: `R` is a request to authenticate.
fn knock(port: u16) -> (u8, u32) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let parameters = b"user\0redial\0database\0redial\0\0";
    let length = u32::try_from(8 + parameters.len()).unwrap();
    stream.write_all(&length.to_be_bytes()).unwrap();
    stream.write_all(&196_608_u32.to_be_bytes()).unwrap();
    stream.write_all(parameters).unwrap();
    let mut answer = [0; 9];
    stream.read_exact(&mut answer).unwrap();
    (answer[0], u32::from_be_bytes(answer[5..9].try_into().unwrap()))
}

#[tokio::test]
async fn a_server_asks_for_a_password_and_keeps_its_address() {
    let temp = open_folder();
    let first = Postgres::start(config(&temp)).await.unwrap();
    let url = first.url();
    assert!(url.starts_with("postgres://redial:") && url.ends_with(&format!("@127.0.0.1:{}/redial", first.port())));
    let scram = 10;
    assert_eq!(knock(first.port()), (b'R', scram));
    let status = first.stop().await;
    assert!(status.success(), "{status}");

    let second = Postgres::start(config(&temp)).await.unwrap();
    assert_eq!(second.url(), url);
    assert_eq!(knock(second.port()), (b'R', scram));
}

#[tokio::test]
async fn a_stale_pid_file_with_a_reused_id_does_not_block_a_start() {
    let temp = open_folder();
    let server = Postgres::start(config(&temp)).await.unwrap();
    let data = temp.path().join("postgres/data");
    let old = server.pid().to_string();
    server.kill().await;
    let file = data.join("postmaster.pid");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen(&old, &std::process::id().to_string(), 1)).unwrap();
    Postgres::start(config(&temp)).await.unwrap();
}

#[tokio::test]
async fn an_interrupted_initdb_is_repeated() {
    let temp = open_folder();
    let half = temp.path().join("postgres/data.new");
    fs::create_dir_all(half.join("base")).unwrap();
    fs::write(half.join("PG_VERSION"), "15").unwrap();
    fs::write(temp.path().join("postgres/password"), "").unwrap();
    let server = Postgres::start(config(&temp)).await.unwrap();
    assert_eq!(knock(server.port()).0, b'R');
    assert!(!half.exists());
    assert!(!temp.path().join("postgres/initdb-password").exists());
}

#[tokio::test]
async fn a_failed_start_quotes_the_log_and_a_lost_password_is_reported_and_data_kept() {
    let temp = open_folder();
    Postgres::start(config(&temp)).await.unwrap().stop().await;
    let error = Postgres::start(config(&temp).setting("no_such_setting", "1")).await.unwrap_err();
    assert!(error.to_string().contains("unrecognized configuration parameter \"no_such_setting\""), "{error}");
    Postgres::start(config(&temp)).await.unwrap().stop().await;
    fs::remove_file(temp.path().join("postgres/password")).unwrap();
    let error = Postgres::start(config(&temp)).await.unwrap_err();
    assert!(matches!(error, ServerError::PasswordLost { .. }), "{error}");
    assert!(temp.path().join("postgres/data/PG_VERSION").exists());
}

/// As root with a folder that no other user can enter, such as a checkout below `/root`. As another user the data stays
/// in the folder.
#[tokio::test]
async fn a_folder_that_postgres_cannot_reach_is_replaced() {
    let temp = tempfile::tempdir().unwrap();
    fs::set_permissions(temp.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let server = Postgres::start(config(&temp)).await.unwrap();
    assert_eq!(knock(server.port()).0, b'R');
    let port = server.port();
    server.stop().await;
    let server = Postgres::start(config(&temp)).await.unwrap();
    assert_eq!(server.port(), port);
    server.stop().await;
    let link = temp.path().join("postgres/elsewhere");
    assert_eq!(link.is_symlink(), rustix::process::geteuid().is_root());
    if link.is_symlink() {
        let target = fs::read_link(&link).unwrap();
        assert!(target.join("data/PG_VERSION").exists());
        assert!(target.starts_with(Path::new("/var/lib/redial")));
        fs::remove_dir_all(target).unwrap();
    }
}
