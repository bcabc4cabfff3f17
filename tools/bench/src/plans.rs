//! `./dev bench plans`: asks every documented question of a database with a long and varied history, and prints how Postgres
//! answered it: which indexes, how many rows and pages, how long.
//!
//! Each question is a command of `redial`; Postgres's own `auto_explain` writes the plan of each statement that ran into the
//! server's log.

mod fill;
mod log;
mod questions;

use std::{
    fs,
    time::{Duration, Instant},
};

use comfy_table::{CellAlignment, Table, presets::NOTHING};
use redial_store::{Pass, Purpose, Store, StoreConfig, stats::RolledUp};

use crate::{
    cli::PlansArgs,
    fleet::Environment,
    output::{note, println},
    servers::Servers,
};
pub(crate) use fill::fill;
use log::{Log, Statement};

/// A question that reads more rows than this has no plan worth the name; those about sums say how many they read.
const MANY: f64 = 10_000.0;

/// From then on, every statement of new connections writes its plan to the server's log.
const EXPLAIN: &str = "ALTER DATABASE redial_plans SET session_preload_libraries = 'auto_explain';
    ALTER DATABASE redial_plans SET auto_explain.log_min_duration = 0;
    ALTER DATABASE redial_plans SET auto_explain.log_analyze = on;
    ALTER DATABASE redial_plans SET auto_explain.log_buffers = on;
    ALTER DATABASE redial_plans SET auto_explain.log_timing = off;
    ALTER DATABASE redial_plans SET auto_explain.log_format = 'json'";

/// Fails if a question scans a table.
pub(crate) async fn run(args: &PlansArgs) -> anyhow::Result<()> {
    let servers = Servers::start(None).await?;
    let asked = ask_all(&servers, args).await;
    servers.stop().await?;
    let bad = asked?;
    anyhow::ensure!(bad.is_empty(), "questions without a plan: {}", bad.join(", "));
    Ok(())
}

/// Prints the plans, and returns the questions that scan a table.
async fn ask_all(servers: &Servers, args: &PlansArgs) -> anyhow::Result<Vec<String>> {
    let (database, began) = (servers.another("redial_plans").await?, Instant::now());
    let filled = fill(&database, args.calls).await?;
    note(&format!("filled in {:.0} s: {}", began.elapsed().as_secs_f64(), database.server().await?.0));
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
    let gigabytes = database.table_bytes("public").await? as f64 / 1e9;
    println(&format!("{} calls, {gigabytes:.1} GB", args.calls))?;
    roll_up(&database.url).await?;
    database.execute(EXPLAIN).await?;
    let mut asker = Asker { environment: servers.environment(&database)?, log: Log::open(&servers.folder)? };
    let mut answers = Vec::new();
    for question in questions::all(&filled) {
        answers.push(asker.ask(question).await?);
    }
    println(&table(&answers))?;
    database.close().await;
    Ok(answers.into_iter().filter(Answer::scans_a_table).map(|answer| answer.question).collect())
}

/// Whoever asks, and where the plans are read.
struct Asker {
    environment: Environment,
    log: Log,
}

impl Asker {
    async fn ask(&mut self, question: String) -> anyhow::Result<Answer> {
        let output = self.environment.folder.join("answer");
        let args: Vec<&str> = question.split(' ').collect();
        self.log.skip()?;
        let began = Instant::now();
        let status = self.environment.spawn(&args, &output)?.ended().await;
        let took = began.elapsed();
        let text = fs::read_to_string(&output)?;
        anyhow::ensure!(status.success(), "redial {question} ended with {status}:\n{text}");
        note(&format!("{question}: {took:?}"));
        Ok(Answer { lines: text.lines().count(), statements: self.log.statements().await?, took, question })
    }
}

/// Rolls up all statistics as a dispatcher does, without its pauses.
async fn roll_up(url: &str) -> anyhow::Result<()> {
    let config = StoreConfig { url: url.to_owned(), connections: 2, purpose: Purpose::Dispatch };
    let (store, began) = (Store::connect(&config).await?, Instant::now());
    let mut pass = Pass::default();
    while !matches!(store.roll_up(&mut pass, 5_000).await?, RolledUp::Done) {}
    store.close().await;
    note(&format!("rolled up in {:.0} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// How a question was answered.
struct Answer {
    question: String,
    /// Of the output.
    lines: usize,
    statements: Vec<Statement>,
    /// The whole command, its start and its connection included.
    took: Duration,
}

impl Answer {
    fn scans_a_table(&self) -> bool {
        self.statements.iter().any(|statement| statement.scans)
    }

    fn cells(&self) -> Vec<String> {
        let mut nodes: Vec<&str> = Vec::new();
        for node in self.statements.iter().flat_map(|statement| &statement.nodes) {
            if !nodes.contains(&node.as_str()) {
                nodes.push(node);
            }
        }
        let rows: f64 = self.statements.iter().map(|statement| statement.rows).sum();
        let pages: f64 = self.statements.iter().map(|statement| statement.pages).sum();
        let mark = if self.scans_a_table() { "SCANS " } else { "" };
        vec![
            self.question.clone(),
            format!("{mark}{}", nodes.join(", ")),
            self.statements.len().to_string(),
            format!("{rows:.0}{}", if rows > MANY { "!" } else { "" }),
            self.lines.to_string(),
            format!("{pages:.0}"),
            self.took.as_millis().to_string(),
        ]
    }
}

fn table(rows: &[Answer]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["question", "plan", "statements", "rows read", "lines", "pages", "ms"]);
    for row in rows {
        table.add_row(row.cells());
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}
