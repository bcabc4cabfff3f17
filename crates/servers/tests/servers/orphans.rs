//! When the process that started the servers is killed, they die with it, and the next start succeeds.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use redial_servers::{Nats, NatsConfig, Postgres, PostgresConfig, Server as _};

const FOLDER: &str = "REDIAL_TEST_FOLDER";

fn configs(folder: &Path) -> (PostgresConfig, NatsConfig) {
    (PostgresConfig::new(folder.join("postgres")).setting("fsync", "off"), NatsConfig::new(folder.join("nats")))
}

/// Is the process that [`the_servers_die_with_a_killed_parent`] runs and kills; not a test.
#[tokio::test]
#[ignore = "the other process of a test"]
async fn parent() {
    let (postgres, nats) = configs(&PathBuf::from(env::var_os(FOLDER).unwrap()));
    // Started from a thread that ends at once: the servers must live as long as the process, not as that thread.
    let starting = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { (Postgres::start(postgres).await.unwrap(), Nats::start(nats).await.unwrap()) })
    });
    let (postgres, nats) = starting.join().unwrap();
    println!("\nPIDS {} {} {} {}", postgres.pid(), nats.pid(), postgres.url(), nats.url());
    tokio::select! {
        status = postgres.ended() => panic!("Postgres ended: {status}"),
        status = nats.ended() => panic!("NATS ended: {status}"),
    }
}

fn spawn_parent(folder: &Path) -> (Child, Vec<String>) {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "orphans::parent", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env("SECRET", "canary")
        .stdout(Stdio::piped());
    let mut parent = command.spawn().unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("PIDS ")).unwrap();
    (parent, line.split(' ').skip(1).map(str::to_owned).collect())
}

/// True if it neither ended nor is a zombie.
fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[tokio::test]
async fn the_servers_die_with_a_killed_parent() {
    let temp = tempfile::tempdir().unwrap();
    let mut last: Option<Vec<String>> = None;
    for _ in 0..3 {
        let (mut parent, facts) = spawn_parent(temp.path());
        for pid in &facts[..2] {
            assert!(lives(pid));
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
            assert!(!environment.windows(6).any(|word| word == b"canary"), "a secret of its parent");
        }
        if let Some(last) = last {
            assert_eq!(facts[2..], last[2..], "the addresses changed");
        }
        parent.kill().unwrap();
        parent.wait().unwrap();
        last = Some(facts);
    }
    // Taking the folders' locks proves that no process is left: the servers' own processes hold them.
    let facts = last.unwrap();
    let (postgres, nats) = configs(temp.path());
    let (postgres, nats) = (Postgres::start(postgres).await.unwrap(), Nats::start(nats).await.unwrap());
    assert!(!lives(&facts[0]) && !lives(&facts[1]));
    assert_eq!([postgres.url(), nats.url()], facts[2..4]);
}

/// As left behind where the kernel does not kill it with its owner.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_outlived_its_owner_is_stopped() {
    let temp = tempfile::tempdir().unwrap();
    let nats = Nats::start(NatsConfig::new(temp.path())).await.unwrap();
    let (url, program) = (nats.url(), fs::read_link(format!("/proc/{}/exe", nats.pid())).unwrap());
    nats.stop().await;
    let lock = temp.path().join("lock");
    let held = fs::OpenOptions::new().read(true).write(true).open(&lock).unwrap();
    held.lock().unwrap();
    let mut left = {
        let mut command = Command::new(program);
        command.arg("--config").arg(temp.path().join("nats.conf")).stdin(held);
        // The command holds the lock as well, and must not outlive this.
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    fs::write(&lock, "999999999").unwrap();

    let next = Nats::start(NatsConfig::new(temp.path())).await.unwrap();
    assert_eq!(next.url(), url, "it has the same address, which is free again");
    assert!(left.try_wait().unwrap().is_some(), "the old one still runs");
    next.stop().await;
}
