//! Case (m): a worker whose HTTP calls all wait for their answers at the same time.

use std::{fs, path::Path, sync::Arc};

use redial_servers::Process;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Barrier,
};

use crate::{database::Database, fleet::Fleet, load::Load, meter, output::note, servers::Servers};

const TOOL: &str = "bench_http";
/// Files that a process has open besides its connections for HTTP calls.
const OTHER_FILES: u64 = 500;
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{\"ok\":true}";

/// Measures the most memory that the worker held, in MB (10^6 bytes); the answers came when all calls waited.
pub(crate) async fn peak_memory(servers: &Servers, database: &Database, calls: u32) -> anyhow::Result<Option<f64>> {
    raise_limit(u64::from(calls) + OTHER_FILES)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let manifest = manifest(&servers.folder, listener.local_addr()?.port())?;
    let service = tokio::spawn(serve(listener, calls));
    let mut fleet = Fleet::start(servers.environment(database)?, 1).await?;
    fleet.add_workers(1, &["worker", "--slots", &calls.to_string(), &manifest]).await?;
    let load = Load::new(&servers.queue, database);
    let submitted = load.submit(TOOL, calls).await?;
    load.drained(&submitted).await?;
    let peak = fleet.workers.first().map(Process::pid).and_then(meter::peak_memory);
    fleet.stop().await;
    service.abort();
    Ok(peak)
}

/// Lets this process, and the worker that it starts, have so many files open.
fn raise_limit(files: u64) -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    let most = limit.maximum.unwrap_or(files);
    anyhow::ensure!(most >= files, "case (m) needs {files} open files, and `ulimit -Hn` allows {most}");
    Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: limit.maximum })?)
}

/// Declares the tool; returns the flag of a worker that has it.
fn manifest(folder: &Path, port: u16) -> anyhow::Result<String> {
    let text = format!(
        "[[tool]]\nname = {TOOL:?}\npool = \"http\"\neffect = \"read\"\ntimeout = \"10m\"\n\
         [tool.parameters]\ntype = \"object\"\nproperties = {{ n = {{}}, text = {{}} }}\n\
         [tool.http]\nmethod = \"POST\"\nurl = \"http://127.0.0.1:{port}/\"\nconnect_timeout = \"1m\"\n"
    );
    let file = folder.join("http-tools.toml");
    fs::write(&file, text)?;
    Ok(format!("--tools={}", file.display()))
}

/// Answers all requests once so many wait.
async fn serve(listener: TcpListener, calls: u32) -> anyhow::Result<()> {
    let all = Arc::new(Barrier::new(usize::try_from(calls)?));
    loop {
        let (connection, _) = listener.accept().await?;
        let all = all.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(connection, &all).await {
                note(&format!("(m) a call was not answered: {error}"));
            }
        });
    }
}

async fn answer(mut connection: TcpStream, all: &Barrier) -> anyhow::Result<()> {
    let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
    // Its body, and so the request, ends with the object of the arguments.
    while !request.ends_with(b"}") {
        let read = connection.read(&mut buffer).await?;
        anyhow::ensure!(read > 0, "a request was cut");
        request.extend_from_slice(&buffer[..read]);
    }
    all.wait().await;
    connection.write_all(ANSWER).await?;
    Ok(connection.shutdown().await?)
}
