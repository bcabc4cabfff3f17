//! What `--stay` adds: an hour of a travel desk in some seconds, so that the console has something to show, and a task now and then
//! while the demo stays. Three people work there, each with a token.

use std::time::Duration;

use anyhow::{Context, ensure};
use redial_proto::{CallId, TaskId};
use reqwest::{Client, Method};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{output, poll::until};

/// How long what was submitted may take to end.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause between two tasks while the demo stays.
const PAUSE: Duration = Duration::from_secs(5);
/// Tasks at the beginning.
const ERRANDS: usize = 40;

/// The desk's people, and what their tokens may do.
const PEOPLE: [(&str, &[&str]); 3] =
    [("anna", &["submit", "read"]), ("wei", &["submit", "read"]), ("omar", &["operate", "read"])];
/// Those who submit.
const CLERKS: usize = 2;
const PLACES: [&str; 6] = [
    "鼎泰豐 信義店",
    "Cervejaria Ramiro",
    "مطعم أبو شقرة",
    "Zum Schwarzen Kameel",
    "すきやばし次郎 🍣",
    "Café Tortoni",
];
const ROUTES: [(&str, &str, &str); 4] =
    [("Lisbon", "Chengdu", "CNY"), ("Vienna", "Cairo", "EGP"), ("Paris", "Tokyo", "JPY"), ("Porto", "Zürich", "CHF")];

/// The gateway, as the desk uses it.
#[derive(Debug)]
pub(crate) struct Desk {
    client: Client,
    url: String,
    tokens: Vec<String>,
    submitted: usize,
}

#[derive(Deserialize)]
struct Task {
    task: TaskId,
}

#[derive(Deserialize)]
struct Call {
    call: Option<CallId>,
}

#[derive(Deserialize)]
struct Calls {
    calls: Vec<Value>,
}

#[derive(Deserialize)]
struct Token {
    token: String,
}

impl Desk {
    /// Opens the desk at a gateway that takes whoever reaches it for an admin.
    pub(crate) async fn open(url: &str) -> anyhow::Result<Self> {
        redial_worker::install_crypto();
        let client = Client::builder().no_proxy().build()?;
        let mut desk = Self { client, url: url.to_owned(), tokens: Vec::new(), submitted: 0 };
        for (user, roles) in PEOPLE {
            let body =
                json!({"roles": roles, "user": user, "label": "travel desk", "expiry": {"after_seconds": 86_400}});
            let Token { token } = desk.send(None, Method::POST, "/v1/tokens", Some(body)).await?;
            desk.tokens.push(token);
        }
        Ok(desk)
    }

    /// The hour's work: errands that are corrected, repaired, retried, or given up; calls of programs; and what a person does about those
    /// that failed.
    pub(crate) async fn work(&mut self) -> anyhow::Result<()> {
        output::error_line(format!(
            "  the console gets something to show: {ERRANDS} tasks of a travel desk, and what people do about failures"
        ));
        let programs = self.call_as_programs().await?;
        let mut tasks = Vec::new();
        for _errand in 0..ERRANDS {
            tasks.push(self.next_errand().await?);
        }
        let worked = tokio::time::timeout(PATIENCE, async {
            for task in tasks {
                self.ended(&format!("/v1/tasks/{task}")).await?;
            }
            for call in programs {
                self.ended(&format!("/v1/calls/{call}")).await?;
            }
            anyhow::Ok(())
        });
        worked.await.with_context(|| format!("the desk's tasks did not end within {} s", PATIENCE.as_secs()))??;
        self.operate().await
    }

    /// One task after another, until somebody ends the demo.
    pub(crate) async fn go_on(&mut self) -> anyhow::Result<()> {
        loop {
            tokio::time::sleep(PAUSE).await;
            self.next_errand().await?;
        }
    }

    /// Submits a task, each of another kind than the one before.
    async fn next_errand(&mut self) -> anyhow::Result<TaskId> {
        let n = self.submitted;
        self.submitted += 1;
        let (place, (from, to, currency)) = (PLACES[n % PLACES.len()], ROUTES[n % ROUTES.len()]);
        let guests = n % 5 + 2;
        let (agent, input) = match n % 8 {
            0 => ("desk", format!("A table for {guests} at {place} tomorrow, please.")),
            1 => (
                "desk",
                format!(
                    "Next week I travel from {from} to {to}, with {currency} in my pocket. What do I need to know?"
                ),
            ),
            2 => ("desk", format!("Can you arrange dinner for {guests} at {place} on Friday?")),
            3 => (
                "concierge",
                format!("I fly from {from} to {to}, with {currency}: which flights are there, and how is the rate?"),
            ),
            4 => ("concierge", format!("Reserve a table for {guests} at {place} tomorrow.")),
            5 => ("desk", "How will the weather be in a week, and which day is that?".to_owned()),
            6 => ("desk", format!("From {to} to {from}, with EUR: the same way back.")),
            // More than the restaurant takes: the model does not find that out.
            _ => ("desk", format!("A big table for {} at {place} tomorrow.", n % 4 + 9)),
        };
        // Two guests write again and again, the others once.
        let conversation = ["guest Bennett", "旅客 陳先生"].get(n % 6);
        let body = json!({"agent": agent, "input": input, "conversation": conversation.map(|name| format!("{name} {}", n / 24 + 1))});
        let task: Task = self.send(Some(n % CLERKS), Method::POST, "/v1/tasks", Some(body)).await?;
        Ok(task.task)
    }

    /// What other programs of the desk submit: prices that take long, rates from a service that is down, and wrong bookings.
    async fn call_as_programs(&self) -> anyhow::Result<Vec<CallId>> {
        let rates = (0..10).map(|n| {
            let (.., currency) = ROUTES[n % ROUTES.len()];
            json!({"tool": "exchange_rate", "arguments": {"from": "USD", "to": currency}, "key": format!("rates-{n}")})
        });
        let prices = (0..6).map(|n| json!({"tool": "refresh_prices", "arguments": {"airlines": n + 3}}));
        let mut ids = Vec::new();
        for call in rates.chain(prices) {
            let call: Call = self.send(Some(0), Method::POST, "/v1/calls", Some(call)).await?;
            ids.extend(call.call);
        }
        for (guests, at) in [(40, "2026-13-01"), (0, "tonight")] {
            let wrong =
                json!({"tool": "book_table", "arguments": {"restaurant": PLACES[1], "guests": guests, "at": at}});
            // It is answered with what is wrong, and on record as refused.
            self.request(Some(0), Method::POST, "/v1/calls", Some(wrong)).send().await?;
        }
        Ok(ids)
    }

    /// What a person does: counts what failed, runs it again now that the service is well, and corrects a call that was refused.
    async fn operate(&self) -> anyhow::Result<()> {
        let filter = json!({"tool": "exchange_rate", "state": "failed"});
        for dry_run in [true, false] {
            let order = json!({"filter": filter, "dry_run": dry_run, "rate": 5});
            let _order: Value = self.send(Some(2), Method::POST, "/v1/redrives", Some(order)).await?;
        }
        let refused: Calls =
            self.send(Some(2), Method::GET, "/v1/calls?tool=book_table&state=refused&page_size=100", None).await?;
        let bare = |call: &&Value| call["task"].is_null();
        let call = refused.calls.iter().find(bare).and_then(|call| call["call"].as_str());
        let call = call.context("no refused call of book_table is on record")?;
        let at = "2026-12-24T19:00:00Z";
        let corrected = json!({"arguments": {"restaurant": PLACES[1], "guests": 8, "at": at}});
        let _again: Value =
            self.send(Some(2), Method::POST, &format!("/v1/calls/{call}/redrive"), Some(corrected)).await?;
        Ok(())
    }

    /// Waits until what is at this path has ended.
    async fn ended(&self, path: &str) -> anyhow::Result<()> {
        let ended = async || {
            let seen: Value = self.send(None, Method::GET, path, None).await?;
            Ok((!seen["finished_at"].is_null()).then_some(()))
        };
        until("the desk's work ends", ended).await
    }

    fn request(
        &self,
        person: Option<usize>,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> reqwest::RequestBuilder {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(person) = person {
            request = request.bearer_auth(&self.tokens[person]);
        }
        match body {
            Some(body) => request.json(&body),
            None => request,
        }
    }

    /// Sends a request as one of [`PEOPLE`], or as whoever reaches the gateway.
    async fn send<T: DeserializeOwned>(
        &self,
        person: Option<usize>,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<T> {
        let response = self.request(person, method, path, body).send().await?;
        let status = response.status();
        let text = response.text().await?;
        ensure!(status.is_success(), "{path} answered {status}: {text}");
        serde_json::from_str(&text).with_context(|| format!("{path} answered {text}"))
    }
}
