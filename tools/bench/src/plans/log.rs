//! What `auto_explain` wrote to the server's log.

use std::{
    fs::{self, File},
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

/// A table is scanned if so many of its rows are read in sequence; nearly empty ones are always read like this.
const SCANNED: f64 = 1_000.0;

/// What each command asks as soon as it is connected.
const AT_START: [&str; 1] = ["Seq Scan on _sqlx_migrations"];

/// The log, and how far it was read.
pub(crate) struct Log {
    path: PathBuf,
    read: u64,
}

/// A statement as it ran.
#[derive(Debug)]
pub(crate) struct Statement {
    /// How its rows were found: the kinds of scans with their indexes or tables.
    pub(crate) nodes: Vec<String>,
    /// Rows that were read from tables and indexes, those that a filter dropped included.
    pub(crate) rows: f64,
    /// Pages of 8 KiB that were looked at, in the buffers or not.
    pub(crate) pages: f64,
    /// It scanned a table.
    pub(crate) scans: bool,
}

impl Log {
    /// Opens the log of the Postgres in a folder of servers.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("postgres/server.log");
        let read = fs::metadata(&path)?.len();
        Ok(Self { path, read })
    }

    /// Leaves out what was written so far.
    pub(crate) fn skip(&mut self) -> anyhow::Result<()> {
        self.read = fs::metadata(&self.path)?.len();
        Ok(())
    }

    /// Returns the statements of Redial since then, in order.
    pub(crate) async fn statements(&mut self) -> anyhow::Result<Vec<Statement>> {
        // A plan is written when its statement ends, which may be just after its last row was received.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        self.skip()?;
        Ok(statements(&text))
    }
}

impl Statement {
    fn of(plan: &Value) -> Self {
        let pages = ["Shared Hit Blocks", "Shared Read Blocks"].map(|what| plan[what].as_f64().unwrap_or(0.0));
        let mut statement = Self { nodes: Vec::new(), rows: 0.0, pages: pages.iter().sum(), scans: false };
        statement.add(plan);
        statement
    }

    fn add(&mut self, node: &Value) {
        let kind = node["Node Type"].as_str().unwrap_or_default();
        let loops = node["Actual Loops"].as_f64().unwrap_or(0.0);
        let number = |what: &str| node[what].as_f64().unwrap_or(0.0);
        let relation = node["Relation Name"].as_str();
        let index = node["Index Name"].as_str();
        // What was planned but never ran says nothing.
        if loops > 0.0 && (relation.is_some() || index.is_some()) {
            let rows =
                (number("Actual Rows") + number("Rows Removed by Filter") + number("Rows Removed by Index Recheck"))
                    * loops;
            // A bitmap's rows are counted where they are fetched.
            self.rows += if kind == "Bitmap Index Scan" { 0.0 } else { rows };
            self.scans |= kind == "Seq Scan" && rows > SCANNED;
            let name = if kind == "Seq Scan" {
                format!("Seq Scan on {}", relation.unwrap_or_default())
            } else {
                index.unwrap_or(kind).to_owned()
            };
            if !self.nodes.contains(&name) && kind != "Bitmap Heap Scan" {
                self.nodes.push(name);
            }
        }
        for child in node["Plans"].as_array().into_iter().flatten() {
            self.add(child);
        }
    }
}

fn statements(text: &str) -> Vec<Statement> {
    let mut lines = text.lines().peekable();
    let mut statements = Vec::new();
    while let Some(line) = lines.next() {
        if !line.ends_with(" ms  plan:") {
            continue;
        }
        let mut json = String::new();
        while let Some(more) = lines.next_if(|line| line.starts_with('\t')) {
            json.push_str(more);
            json.push('\n');
        }
        // Statements of Postgres itself or of the bench's own connections have a plan, too; only those on tables of Redial count.
        if let Ok(plan) = serde_json::from_str::<Value>(&json) {
            let statement = Statement::of(&plan["Plan"]);
            if statement.nodes.first().is_some_and(|node| !AT_START.contains(&node.as_str())) {
                statements.push(statement);
            }
        }
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_read_from_the_log_between_other_lines() {
        let text = "2026-11-23 08:00:00 UTC [7] LOG:  checkpoint starting: time\n\
                    2026-11-23 08:00:00 UTC [8] LOG:  duration: 0.5 ms  plan:\n\
                    \t{\n\t  \"Query Text\": \"SELECT\\n1\",\n\t  \"Plan\": {\"Node Type\": \"Limit\", \"Actual Loops\": 1,\n\
                    \t    \"Shared Hit Blocks\": 3, \"Shared Read Blocks\": 4, \"Plans\": [\n\
                    \t    {\"Node Type\": \"Index Scan\", \"Index Name\": \"calls_tool\", \"Relation Name\": \"calls\",\n\
                    \t     \"Actual Rows\": 2, \"Actual Loops\": 3, \"Rows Removed by Filter\": 1},\n\
                    \t    {\"Node Type\": \"Seq Scan\", \"Relation Name\": \"calls\", \"Actual Rows\": 5000, \"Actual Loops\": 1},\n\
                    \t    {\"Node Type\": \"Seq Scan\", \"Relation Name\": \"tasks\", \"Actual Rows\": 0, \"Actual Loops\": 0}]}\n\t}\n\
                    2026-11-23 08:00:01 UTC [8] LOG:  something else\n";
        let [statement] = &statements(text)[..] else { panic!("{:?}", statements(text)) };
        assert_eq!(statement.nodes, ["calls_tool", "Seq Scan on calls"]);
        assert_eq!((statement.rows, statement.pages, statement.scans), (5_009.0, 7.0, true));
    }
}
