//! `./dev bench plans`: asks every documented question of a database with a long and varied history, and prints how Postgres
//! answered it: which indexes, how many rows and pages, how long.
//!
//! The questions go through the store, as the commands of `redial` ask them; Postgres's own `auto_explain` writes the plan of
//! each statement that ran into the server's log.

mod addresses;
mod fill;
mod http;
mod log;
mod questions;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use comfy_table::{CellAlignment, Table, presets::NOTHING};
use redial_store::{Purpose, Store, StoreConfig, stats::RolledUp};

use crate::{
    cli::PlansArgs,
    database::Database,
    output::{note, println},
    servers::Servers,
};
use fill::Filled;
use log::{Log, Statement};
use questions::Question;

/// The database with the history.
const DATABASE: &str = "redial_plans";
/// A question that reads more rows than this has no plan worth the name; those about sums say how many they read.
const MANY: f64 = 10_000.0;

/// See the module. Fails if a question scans a table.
pub(crate) async fn run(args: &PlansArgs) -> anyhow::Result<()> {
    let servers = match &args.keep {
        Some(folder) => Servers::start_in(folder, Vec::new()).await?,
        None => Servers::start(Vec::new()).await?,
    };
    let asked = ask_all(&servers, args).await;
    if args.keep.is_some() {
        servers.stop_and_keep().await;
    } else {
        servers.stop().await?;
    }
    let bad = asked?;
    anyhow::ensure!(bad.is_empty(), "questions without a plan: {}", bad.join(", "));
    Ok(())
}

/// Prints the plans, and returns the names of the questions that scan a table.
async fn ask_all(servers: &Servers, args: &PlansArgs) -> anyhow::Result<Vec<String>> {
    let (database, filled) = history(servers, args).await?;
    println(&format!("{} calls, {} GB", filled.calls, gigabytes(database.table_bytes("public").await?)))?;
    if args.http {
        println(&roll_up(&database.url, &filled).await?)?;
        return http::ask_all(servers, &database, &filled).await;
    }
    let mut log = Log::open(&servers.folder)?;
    database.explain_everything().await?;
    let store = connect(&database.url, Purpose::Audit).await?;
    let mut bad = print_answers(&store, &mut log, questions::about_calls(&filled)).await?;
    println(&roll_up(&database.url, &filled).await?)?;
    bad.extend(print_answers(&store, &mut log, questions::about_sums(&filled)).await?);
    store.close().await;
    database.close().await;
    Ok(bad)
}

/// A history that was kept, or a new one.
async fn history(servers: &Servers, args: &PlansArgs) -> anyhow::Result<(Database, Filled)> {
    if args.keep.is_some()
        && let Ok(database) = servers.existing(DATABASE).await
    {
        return Ok((database.clone(), fill::found(&database).await?));
    }
    let database = servers.another(DATABASE).await?;
    let began = Instant::now();
    let filled = fill::fill(&database, args.calls).await?;
    note(&format!("filled in {:.0} s: {}", began.elapsed().as_secs_f64(), database.version().await?));
    Ok((database, filled))
}

/// Asks questions and prints how they were answered; returns the names of those that scan a table.
async fn print_answers(store: &Store, log: &mut Log, questions: Vec<Question>) -> anyhow::Result<Vec<String>> {
    let mut answers = Vec::new();
    for question in questions {
        answers.push(Answer::ask(store, log, &question).await?);
    }
    println(&table(&answers))?;
    Ok(answers.into_iter().filter(Answer::scans_a_table).map(|answer| answer.name).collect())
}

async fn connect(url: &str, purpose: Purpose) -> anyhow::Result<Store> {
    Ok(Store::connect(&StoreConfig { url: url.to_owned(), connections: 2, purpose }).await?)
}

/// Rolls up all statistics as a dispatcher does, without its pauses; says how long that took.
async fn roll_up(url: &str, filled: &Filled) -> anyhow::Result<String> {
    let store = connect(url, Purpose::Dispatch).await?;
    let (began, mut calls, mut longest) = (Instant::now(), 0, Duration::ZERO);
    loop {
        let step = Instant::now();
        match store.roll_up(filled.now, 5_000).await? {
            RolledUp::Added { calls: added } => calls += added,
            RolledUp::Busy => {}
            RolledUp::Done => break,
        }
        longest = longest.max(step.elapsed());
    }
    store.close().await;
    let all = began.elapsed().as_secs_f64();
    Ok(format!("rolled up {calls} calls in {all:.0} s; the longest step took {} ms", longest.as_millis()))
}

/// How a question was answered.
struct Answer {
    name: String,
    found: usize,
    statements: Vec<Statement>,
    /// The first time, and again.
    took: [Duration; 2],
}

impl Answer {
    async fn ask(store: &Store, log: &mut Log, question: &Question) -> anyhow::Result<Self> {
        let mut took = [Duration::ZERO; 2];
        let mut found = 0;
        let mut statements = Vec::new();
        for took in &mut took {
            log.skip()?;
            let began = Instant::now();
            found = question.ask(store).await.with_context(|| question.name.to_owned())?;
            *took = began.elapsed();
            statements = log.statements().await?;
        }
        note(&format!("{}: {:?}", question.name, took[1]));
        Ok(Self { name: question.name.to_owned(), found, statements, took })
    }

    fn scans_a_table(&self) -> bool {
        self.statements.iter().any(Statement::scans_a_table)
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
        let ms = |took: Duration| format!("{:.1}", took.as_secs_f64() * 1000.0);
        let mark = if self.scans_a_table() { "SCANS " } else { "" };
        vec![
            self.name.clone(),
            format!("{mark}{}", nodes.join(", ")),
            self.statements.len().to_string(),
            format!("{rows:.0}{}", if rows > MANY { "!" } else { "" }),
            self.found.to_string(),
            format!("{pages:.0}"),
            ms(self.took[0]),
            ms(self.took[1]),
        ]
    }
}

fn table(rows: &[Answer]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["question", "plan", "statements", "rows read", "found", "pages", "first ms", "again ms"]);
    for row in rows {
        table.add_row(row.cells());
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
fn gigabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e9)
}
