//! Runs a command with a fresh private Postgres and NATS: their addresses are in `DATABASE_URL` and `NATS_URL`.
//!
//! `cargo run -p redial-servers --example with_servers -- env`

use std::{error::Error, process::ExitCode};

use redial_servers::{Nats, NatsConfig, Postgres, PostgresConfig, Server as _};

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or("usage: with_servers PROGRAM [ARGUMENT…]")?;
    let folder = std::env::temp_dir().join(format!("redial-with-servers-{}", std::process::id()));
    let postgres = Postgres::start(PostgresConfig::new(folder.join("postgres")).setting("fsync", "off")).await?;
    let nats = Nats::start(NatsConfig::new(folder.join("nats"))).await?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).env("DATABASE_URL", postgres.url()).env("NATS_URL", nats.url());
    let status = command.status().await;
    postgres.stop().await;
    nats.stop().await;
    std::fs::remove_dir_all(&folder)?;
    Ok(status?.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
