//! Measures what a gateway answers: how long the first byte takes, and by another gateway whose connections explain each statement,
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
    fleet::Fleet,
    output::{note, println},
    servers::Servers,
};

/// Measured requests to each address, after those that warm it.
const MEASURED: usize = 20;
const WARMING: usize = 3;
/// What an address may take.
const ADDRESS: Duration = Duration::from_millis(80);
/// What a search may take.
const SEARCH: Duration = Duration::from_millis(300);

/// An answer, and what it took.
struct Answer {
    tenant: &'static str,
    path: String,
    found: String,
    searched: String,
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
    for address in addresses::all(filled) {
        let url = |of: &HashMap<&str, String>| format!("{}{}", of[address.tenant], address.path);
        let (times, body) = measure(&client, &url(&plain)).await?;
        log.skip()?;
        get(&client, &url(&explaining)).await?;
        answers.push(Answer::of(address, times, &body, log.statements().await?));
    }
    fleet.stop().await;
    database.explain_nothing().await?;
    println(&table(&answers))?;
    Ok(answers.iter().filter(|answer| answer.is_bad()).map(Answer::name).collect())
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
async fn measure(client: &reqwest::Client, url: &str) -> anyhow::Result<(Vec<Duration>, Value)> {
    let mut times = Vec::new();
    let mut body = Value::Null;
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

async fn get(client: &reqwest::Client, url: &str) -> anyhow::Result<(Duration, Value)> {
    let began = Instant::now();
    let response = client.get(url).send().await?.error_for_status().with_context(|| url.to_owned())?;
    let took = began.elapsed();
    Ok((took, serde_json::from_slice(&response.bytes().await?)?))
}

impl Answer {
    #[expect(clippy::needless_pass_by_value, reason = "what was measured ends here")]
    fn of(address: Address, times: Vec<Duration>, body: &Value, statements: Vec<Statement>) -> Self {
        let Address { tenant, path, searches } = address;
        let list = body.as_object().and_then(|fields| fields.values().find_map(Value::as_array));
        let searched = &body["searched"];
        let looked = searched["calls"].as_u64().or_else(|| searched["tasks"].as_u64());
        let all = if searched["complete"] == true { "all " } else { "" };
        let median = times[times.len() / 2];
        Self {
            is_slow: median > if searches { SEARCH } else { ADDRESS },
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
        let sum = |of: fn(&Statement) -> f64| format!("{:.0}", self.statements.iter().map(of).sum::<f64>());
        vec![
            self.tenant.to_owned(),
            self.path.replace("&look_ms=250", ""),
            self.found.clone(),
            self.searched.clone(),
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
    table.set_header(["tenant", "address", "found", "looked at", "median ms", "most", "rows read", "pages", "plan"]);
    for answer in answers {
        table.add_row(answer.cells());
    }
    for column in 2..8 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}
