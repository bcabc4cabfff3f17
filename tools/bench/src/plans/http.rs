//! Measures what a gateway answers, pages of the console included: how long the first byte takes, and by another gateway whose connections explain each statement,
//! which indexes were used and how many rows were read.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use comfy_table::{CellAlignment, Table, presets::NOTHING};
use serde_json::Value;

use super::{
    addresses::{self, Address, TENANTS},
    fill::Filled,
    log::{Log, Statement},
};
use crate::{
    database::Database,
    fleet::{Fleet, Program},
    output::{note, println},
    servers::Servers,
};

/// Measured requests to each address, after those that warm it.
const MEASURED: usize = 20;
const WARMING: usize = 3;
/// What an address may take, and a page, which is made of several.
const ADDRESS: Duration = Duration::from_millis(80);
const PAGE: Duration = Duration::from_millis(100);
/// Bytes that a page may have.
const PAGE_BYTES: usize = 150 * 1024;
/// Tools that a worker declares, as the history names them.
const TOOLS: u32 = 40;
/// What a search may take.
const SEARCH: Duration = Duration::from_millis(300);

/// An answer, and what it took.
struct Answer {
    tenant: &'static str,
    path: String,
    found: String,
    searched: String,
    bytes: usize,
    median: Duration,
    most: Duration,
    statements: Vec<Statement>,
    is_slow: bool,
}

/// Prints how long every address takes, and how it is answered; returns those that are too slow or scan a table.
pub(super) async fn ask_all(servers: &Servers, database: &Database, filled: &Filled) -> anyhow::Result<Vec<String>> {
    redial_worker::install_crypto();
    let client = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
    database.explain_nothing().await?;
    let mut fleet = Fleet::start(servers, database, 0).await?;
    let plain = gateways(&mut fleet).await?;
    database.explain_everything().await?;
    let explaining = gateways(&mut fleet).await?;
    let mut log = Log::open(&servers.folder)?;
    let mut answers = Vec::new();
    let mut ask = async |address: Address| {
        let url = |of: &HashMap<&str, String>| format!("{}{}", of[address.tenant], address.path);
        let (times, body) = measure(&client, &url(&plain)).await?;
        log.skip()?;
        get(&client, &url(&explaining)).await?;
        answers.push(Answer::of(address, times, &body, log.statements().await?));
        anyhow::Ok(())
    };
    for address in addresses::all(filled) {
        ask(address).await?;
    }
    // Last, because a dispatcher takes up what is open in the history.
    serve_tools(&mut fleet, servers).await?;
    for address in addresses::of_a_dispatcher() {
        ask(address).await?;
    }
    fleet.stop().await;
    database.explain_nothing().await?;
    println(&table(&answers))?;
    Ok(answers.iter().filter(|answer| answer.is_bad()).map(Answer::name).collect())
}

/// Starts a dispatcher, and a worker with tools of the names that the history has.
async fn serve_tools(fleet: &mut Fleet, servers: &Servers) -> anyhow::Result<()> {
    let tool = |n| {
        format!(
            "[[tool]]\nname = \"tool_{n}\"\neffect = \"read\"\nparameters = {{ type = \"object\" }}\n\
             [tool.http]\nmethod = \"POST\"\nurl = \"http://127.0.0.1:9/\"\n"
        )
    };
    let file = servers.folder.join("tools.toml");
    std::fs::write(&file, (0..TOOLS).map(tool).collect::<String>())?;
    fleet.add_dispatcher().await?;
    fleet.add_workers(1, Program::Redial, &["worker", "--tools", &file.display().to_string()]).await
}

/// A gateway for each tenant.
async fn gateways(fleet: &mut Fleet) -> anyhow::Result<HashMap<&'static str, String>> {
    let mut gateways = HashMap::new();
    for tenant in TENANTS {
        gateways.insert(tenant, fleet.add_gateway_of(tenant).await?);
    }
    Ok(gateways)
}

/// How long the first byte took, in order of time, and the answer.
async fn measure(client: &reqwest::Client, url: &str) -> anyhow::Result<(Vec<Duration>, Vec<u8>)> {
    let mut times = Vec::new();
    let mut body = Vec::new();
    for n in 0..WARMING + MEASURED {
        let (took, answer) = get(client, url).await?;
        if n >= WARMING {
            times.push(took);
        }
        body = answer;
    }
    times.sort_unstable();
    note(&format!("{url}: {:?}", times[MEASURED / 2]));
    Ok((times, body))
}

async fn get(client: &reqwest::Client, url: &str) -> anyhow::Result<(Duration, Vec<u8>)> {
    let began = Instant::now();
    let response = client.get(url).send().await?.error_for_status().with_context(|| url.to_owned())?;
    let took = began.elapsed();
    Ok((took, response.bytes().await?.into()))
}

impl Answer {
    #[expect(clippy::needless_pass_by_value, reason = "what was measured ends here")]
    fn of(address: Address, times: Vec<Duration>, body: &[u8], statements: Vec<Statement>) -> Self {
        let Address { tenant, path, searches } = address;
        let (bytes, is_page) = (body.len(), path.starts_with("/console"));
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let list = body.as_object().and_then(|fields| fields.values().find_map(Value::as_array));
        let searched = &body["searched"];
        let looked = searched["calls"].as_u64().or_else(|| searched["tasks"].as_u64());
        let all = if searched["complete"] == true { "all " } else { "" };
        let median = times[times.len() / 2];
        Self {
            is_slow: match (searches, is_page) {
                (true, _) => median > SEARCH,
                (false, true) => median > PAGE || bytes > PAGE_BYTES,
                (false, false) => median > ADDRESS,
            },
            bytes,
            found: list.map(|list| list.len().to_string()).unwrap_or_default(),
            searched: looked.map(|looked| format!("{all}{looked}")).unwrap_or_default(),
            median,
            most: times.last().copied().unwrap_or_default(),
            tenant,
            path,
            statements,
        }
    }

    fn name(&self) -> String {
        format!("{} {}", self.tenant, self.path)
    }

    fn is_bad(&self) -> bool {
        self.is_slow || self.statements.iter().any(Statement::scans_a_table)
    }

    fn cells(&self) -> Vec<String> {
        let mut nodes: Vec<&str> = Vec::new();
        for node in self.statements.iter().flat_map(|statement| &statement.nodes) {
            if !nodes.contains(&node.as_str()) {
                nodes.push(node);
            }
        }
        let ms = |took: Duration| format!("{:.1}", took.as_secs_f64() * 1000.0);
        let mark = if self.is_slow { "!" } else { "" };
        let sum = |of: fn(&Statement) -> f64| {
            format!("{:.0}", self.statements.iter().map(of).fold(0.0, |all, one| all + one))
        };
        vec![
            self.tenant.to_owned(),
            self.path.replace("&look_ms=250", ""),
            self.found.clone(),
            self.searched.clone(),
            (self.bytes / 1024).to_string(),
            format!("{}{mark}", ms(self.median)),
            ms(self.most),
            sum(|statement| statement.rows),
            sum(|statement| statement.pages),
            nodes.join(", "),
        ]
    }
}

fn table(answers: &[Answer]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header([
        "tenant",
        "address",
        "found",
        "looked at",
        "KiB",
        "median ms",
        "most",
        "rows read",
        "pages",
        "plan",
    ]);
    for answer in answers {
        table.add_row(answer.cells());
    }
    for column in 2..9 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}
