//! The calls that match a filter as a file: a stream, of which nothing is held but a portion.

use axum::{
    body::Body,
    http::{HeaderValue, Uri, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::stream;
use redial_api::CallItem;
use redial_proto::CallId;
use redial_store::audit::{Limits, Search};
use redial_views::csv_cell;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    list::{CallsQuery, search},
    ndjson,
};
use crate::{
    bounds::{LOOKED, LOOKS_FOR},
    extract::Query,
    gateway::{Api, Shared},
    identity::Identity,
    problem::Problem,
};

/// Calls that are read at once.
const PORTION: u64 = 500;
/// Calls of a file, unless the request says otherwise.
const MOST: u64 = 1_000_000;
/// The columns of comma-separated values.
const COLUMNS: &str = "call,tool,state,class,message,attempts,submitted_at,finished_at,total_ms,conversation,key,last_worker,redriven_as\n";

/// Which calls, and in what form. It is read in two parts: what is here, and the filter.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes what is read")]
pub(super) struct ExportQuery {
    /// Default: `jsonl`.
    format: Option<Format>,
    /// Calls at most. Default: 1,000,000.
    limit: Option<u64>,
    #[schemars(flatten)]
    calls: CallsQuery,
}

#[derive(Deserialize)]
struct Form {
    #[serde(default)]
    format: Format,
    limit: Option<u64>,
}

/// The form of a file.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// Comma-separated values (RFC 4180), with a head.
    Csv,
    /// A JSON object in each line.
    #[default]
    Jsonl,
}

/// The last line: whether it is all.
#[derive(Serialize)]
struct End {
    exported: u64,
    /// No call that matches is left out.
    complete: bool,
}

struct Export {
    gateway: Shared,
    who: Identity,
    search: Search,
    format: Format,
    /// Calls that it may still have.
    left: u64,
    exported: u64,
    state: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Calls,
    Ended { complete: bool },
    Told,
}

pub(super) async fn export(Api { gateway, who }: Api, uri: Uri) -> Result<Response, Problem> {
    let (own, filter) = parts(uri.query().unwrap_or_default());
    let Query(Form { format, limit }) = Query::<Form>::read(&own)?;
    let Query(filter) = Query::<CallsQuery>::read(&filter)?;
    if filter.page_size.is_some() || filter.page_token.is_some() {
        return Err(Problem::invalid("an export has no pages; allowed instead of page_size and page_token: limit"));
    }
    let permit = who.limits.stream()?;
    let search = search(filter, None)?;
    let (media, ending) = match format {
        Format::Csv => ("text/csv; charset=utf-8; header=present", "csv"),
        Format::Jsonl => (ndjson::MEDIA, "jsonl"),
    };
    let export = Export { gateway, who, search, format, left: limit.unwrap_or(MOST), exported: 0, state: Stage::Head };
    let lines = stream::try_unfold((export, permit), |(mut export, permit)| async move {
        Ok::<_, std::io::Error>(export.next().await?.map(|lines| (lines, (export, permit))))
    });
    let name = format!("attachment; filename=\"calls-{}.{ending}\"", chrono::Utc::now().format("%Y-%m-%dT%H%M%SZ"));
    let mut response = ([(header::CONTENT_TYPE, media)], Body::from_stream(Box::pin(lines))).into_response();
    if let Ok(name) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// Separates the own part of a query from the filter.
fn parts(query: &str) -> (String, String) {
    let is_own = |pair: &&str| matches!(pair.split('=').next(), Some("format" | "limit"));
    let (own, filter): (Vec<&str>, Vec<&str>) = query.split('&').filter(|pair| !pair.is_empty()).partition(is_own);
    (own.join("&"), filter.join("&"))
}

impl Export {
    /// Returns the next lines. An error breaks the file off: whoever reads it sees that it is not whole.
    async fn next(&mut self) -> Result<Option<Bytes>, std::io::Error> {
        match self.state {
            Stage::Head => {
                self.state = if self.left == 0 { Stage::Ended { complete: false } } else { Stage::Calls };
                Ok(Some(match self.format {
                    Format::Csv => Bytes::from_static(COLUMNS.as_bytes()),
                    Format::Jsonl => Bytes::new(),
                }))
            }
            Stage::Calls => {
                let portion = self.portion().await;
                let broken = |problem: Problem| std::io::Error::other(problem.error.message);
                Ok(Some(Bytes::from(portion.map_err(broken)?)))
            }
            Stage::Ended { complete } => {
                self.state = Stage::Told;
                let end = End { exported: self.exported, complete };
                let line = match self.format {
                    Format::Csv if complete => format!("# exported {}: all that match\n", self.exported),
                    Format::Csv => format!("# exported {}: there are more\n", self.exported),
                    Format::Jsonl => json_line(&end),
                };
                Ok(Some(Bytes::from(line)))
            }
            Stage::Told => Ok(None),
        }
    }

    async fn portion(&mut self) -> Result<String, Problem> {
        // However long it takes: a file that breaks off has to be asked for again as a whole.
        let _share = self.gateway.limits.export_read(&self.who.tenant).await;
        let matches = usize::try_from(self.left.min(PORTION)).unwrap_or(usize::MAX);
        let limits = Limits { matches, looked: LOOKED, time: LOOKS_FOR };
        let store = self.gateway.store.of(&self.who.tenant);
        let found = store.search(&self.search, limits).await?;
        let ids: Vec<CallId> = found.calls.iter().map(|found| found.call).collect();
        let calls = self.gateway.store.call_lines(&ids).await?;
        self.exported += calls.len() as u64;
        self.left = self.left.saturating_sub(calls.len() as u64);
        self.search.filter.before = found.last.or(self.search.filter.before);
        if found.ended {
            self.state = Stage::Ended { complete: true };
        } else if self.left == 0 {
            self.state = Stage::Ended { complete: false };
        }
        Ok(calls.iter().map(|call| self.line(call)).collect())
    }

    fn line(&self, call: &CallItem) -> String {
        match self.format {
            Format::Jsonl => json_line(call),
            Format::Csv => csv_line(call),
        }
    }
}

fn json_line(value: &impl Serialize) -> String {
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

fn csv_line(call: &CallItem) -> String {
    let time = |at: &Option<chrono::DateTime<chrono::Utc>>| at.map(|at| at.to_rfc3339()).unwrap_or_default();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let cells = [
        call.call.to_string(),
        call.tool.clone(),
        call.state.to_string(),
        call.class.map(|class| class.to_string()).unwrap_or_default(),
        text(&call.message),
        call.attempts.to_string(),
        call.submitted_at.to_rfc3339(),
        time(&call.finished_at),
        call.total_ms.map(|ms| ms.to_string()).unwrap_or_default(),
        text(&call.conversation),
        text(&call.key),
        text(&call.last_worker),
        call.redriven_as.map(|call| call.to_string()).unwrap_or_default(),
    ];
    let cells: Vec<_> = cells.iter().map(|text| csv_cell(text)).collect();
    format!("{}\n", cells.join(","))
}
