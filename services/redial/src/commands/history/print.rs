//! Prints calls as text, as lines of JSON, or as CSV.

use std::collections::HashMap;

use redial_api::CallItem;
use redial_proto::{CallId, ErrorClass};
use redial_store::{
    Store,
    audit::{CallAudit, FoundCall},
};
use uuid::Uuid;

use super::csv;
use crate::{
    ids::Short,
    list::{self, Field, List},
    output,
    table::{self, Cell},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text { wide: bool },
    Json,
    Csv,
}

const FIELDS: &[Field<CallItem>] = &[
    Field::whole("call", |line, form| form.ids.text(line.call.0).into()),
    Field::shortened("tool", 5, |line, _| output::one_line(&line.tool, TEXT).into()),
    Field::whole("state", |line, _| table::state(line.state.as_str())),
    Field::shortened("class", 5, |line, _| text(line.class.map(ErrorClass::as_str))),
    Field::wide("attempts", |line, _| line.attempts.to_string().into()),
    Field::whole("submitted", |line, form| form.time(line.submitted_at).into()),
    Field::whole("total", |line, _| line.total_ms.map(output::span).unwrap_or_default().into()),
    Field::wide("retry due", |line, _| line.next_attempt_at.map(output::time).unwrap_or_default().into()),
    Field::wide("last worker", |line, _| text(line.last_worker.as_deref())),
    Field::wide("conversation", |line, _| text(line.conversation.as_deref())),
    Field::wide("key", |line, _| text(line.key.as_deref())),
    Field::wide("redriven as", |line, _| line.redriven_as.map(|id| id.to_string()).unwrap_or_default().into()),
    Field::wide("message", |line, _| text(line.message.as_deref())),
];
/// Characters of a text in a wide table.
const TEXT: usize = 200;

pub(super) struct Printer<'a> {
    store: &'a Store,
    form: Form,
    list: List<CallItem>,
    printed: usize,
}

impl<'a> Printer<'a> {
    pub(super) async fn new(store: &'a Store, form: Form) -> anyhow::Result<Self> {
        if form == Form::Csv {
            output::line(csv::HEAD.join(","))?;
        }
        let wide = form == Form::Text { wide: true };
        // By the database's clock, as the times of calls are.
        let list = List::of_stdout(FIELDS, list::Form::new(wide, store.now().await?));
        Ok(Self { store, form, list, printed: 0 })
    }

    pub(super) const fn printed(&self) -> usize {
        self.printed
    }

    pub(super) async fn print(&mut self, calls: &[FoundCall]) -> anyhow::Result<()> {
        if calls.is_empty() {
            return Ok(());
        }
        let ids: Vec<CallId> = calls.iter().map(|found| found.call).collect();
        match self.form {
            Form::Text { wide } => self.text(&ids, wide).await?,
            Form::Json => self.records(&ids, output::json).await?,
            Form::Csv => self.records(&ids, |record| Ok(output::line(csv::row(record)?)?)).await?,
        }
        self.printed += calls.len();
        Ok(())
    }

    async fn text(&mut self, ids: &[CallId], wide: bool) -> anyhow::Result<()> {
        let lines = in_order(ids, self.store.call_lines(ids).await?, |line| line.call);
        if !wide {
            let raw: Vec<Uuid> = lines.iter().map(|line| line.call.0).collect();
            self.list.form.ids = Short::of(self.store, &raw).await?;
        }
        Ok(output::line(self.list.part(&lines))?)
    }

    /// Reads what is on record of them, a bounded amount at a time.
    async fn records(&self, ids: &[CallId], print: impl Fn(&CallAudit) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for group in self.store.record_groups(ids).await? {
            let records = self.store.records_of(&group).await?;
            in_order(&group, records, |record| record.line.call).iter().try_for_each(&print)?;
        }
        Ok(())
    }
}

fn in_order<T>(ids: &[CallId], mut items: Vec<T>, id: impl Fn(&T) -> CallId) -> Vec<T> {
    let positions: HashMap<CallId, usize> = ids.iter().enumerate().map(|(at, call)| (*call, at)).collect();
    items.sort_by_key(|item| positions.get(&id(item)).copied());
    items
}

fn text(text: Option<&str>) -> Cell {
    output::one_line(text.unwrap_or_default(), TEXT).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{table::Paper, timeline::sample};

    fn lines() -> Vec<CallItem> {
        let line = |call: &str, state: &str, rest: serde_json::Value| CallItem {
            call: call.parse().unwrap(),
            tool: "订机票".to_owned(),
            state: state.parse().unwrap(),
            class: rest["class"].as_str().map(|class| class.parse().unwrap()),
            message: rest["message"].as_str().map(str::to_owned),
            attempts: 2,
            submitted_at: "2026-11-20T08:00:00.250Z".parse().unwrap(),
            total_ms: rest["total_ms"].as_i64(),
            next_attempt_at: rest["next"].as_str().map(|time| time.parse().unwrap()),
            last_worker: Some("host-0123456789ab".to_owned()),
            ..sample::line()
        };
        vec![
            line("01936b1c-0000-7000-8000-000000000003", "retry_wait", json!({"next": "2026-11-20T08:00:03.5Z"})),
            line(
                "01936b1c-0000-7000-8000-000000000002",
                "failed",
                json!({"class": "business_rule", "message": "sold\nout", "total_ms": 83_456}),
            ),
            line("01936b1c-0000-7000-8000-000000000001", "succeeded", json!({"total_ms": 12})),
        ]
    }

    #[test]
    fn one_line_for_each_call() {
        let (now, lines) = ("2026-11-20T08:03:00Z".parse().unwrap(), lines());
        insta::assert_snapshot!(list::both(FIELDS, now, &lines));
    }

    #[test]
    fn the_longest_line_fits_80_columns() {
        let (now, mut lines) = ("2026-11-20T09:59:00Z".parse().unwrap(), lines());
        for line in &mut lines {
            line.tool = "a_tool_whose_name_is_as_long_as_a_name_may_be_which_is_64_chars".to_owned();
            line.class = Some(ErrorClass::MalformedArguments);
            line.total_ms = Some(9_999 * 3_600_000 - 60_000);
        }
        let text = List::new(FIELDS, list::Form::new(false, now), Paper::test(Some(80))).part(&lines);
        let widest = text.lines().map(unicode_width::UnicodeWidthStr::width).max();
        // Whole ids are the worst case: calls of one millisecond have 28 characters.
        assert!(widest.is_some_and(|widest| widest <= 80 + 36 - 28), "{text}");
    }
}
