//! What `--stay` adds: an hour of a travel desk in some seconds, so that the console has something to show, and a task
//! now and then while the demo stays. Three people work there, each with a token.

use std::time::Duration;

use anyhow::{Context, ensure};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::{print, redial::until, tell};

/// How long what was submitted may take to end.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause between two tasks while the demo stays.
const PAUSE: Duration = Duration::from_secs(5);
/// Tasks at the beginning.
const ERRANDS: usize = 40;
/// The desk's people, and what their tokens may do; the first two submit.
const PEOPLE: [(&str, &[&str]); 3] =
    [("anna", &["submit", "read"]), ("wei", &["submit", "read"]), ("omar", &["operate", "read"])];
const OMAR: usize = 2;
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
struct Desk {
    client: Client,
    url: String,
    tokens: Vec<String>,
}

/// Fills the console, and goes on until it is stopped. What fails there is told, and what is there can be looked at.
pub(crate) async fn open(url: &str) {
    redial_worker::install_crypto();
    let Ok(client) = Client::builder().no_proxy().build() else { return tell("demo: no HTTP client") };
    let mut desk = Desk { client, url: url.to_owned(), tokens: Vec::new() };
    let worked = desk.work().await;
    print(format!("Look at what happened: {url}/console   (Ctrl-C ends the demo)"));
    let went_on = match worked {
        Ok(()) => desk.go_on().await,
        Err(error) => Err(error),
    };
    if let Err(error) = went_on {
        tell(format!("demo: {error:#}"));
    }
    std::future::pending::<()>().await;
}

impl Desk {
    /// The hour's work: errands that are corrected, repaired, retried, or given up; calls of programs; and what a person
    /// does about those that failed.
    async fn work(&mut self) -> anyhow::Result<()> {
        tell(format!(
            "  the console gets something to show: {ERRANDS} tasks of a travel desk, and what people do about failures"
        ));
        for (user, roles) in PEOPLE {
            let body =
                json!({"roles": roles, "user": user, "label": "travel desk", "expiry": {"after_seconds": 86_400}});
            let token = self.send(None, Method::POST, "/v1/tokens", Some(body)).await?;
            self.tokens.push(token["token"].as_str().context("no token")?.to_owned());
        }
        let mut submitted = self.call_as_programs().await?;
        for n in 0..ERRANDS {
            submitted.push(self.run_errand(n).await?);
        }
        let worked = tokio::time::timeout(PATIENCE, async {
            for path in submitted {
                let ended = async || {
                    let seen = self.send(None, Method::GET, &path, None).await?;
                    Ok((!seen["finished_at"].is_null()).then_some(()))
                };
                until("the desk's work ends", ended).await?;
            }
            anyhow::Ok(())
        });
        worked.await.with_context(|| format!("the desk's tasks did not end within {} s", PATIENCE.as_secs()))??;
        self.operate().await
    }

    /// One task after another, until somebody ends the demo.
    async fn go_on(&self) -> anyhow::Result<()> {
        for n in ERRANDS.. {
            tokio::time::sleep(PAUSE).await;
            self.run_errand(n).await?;
        }
        Ok(())
    }

    /// Submits a task, each of another kind than the one before; returns its path.
    async fn run_errand(&self, n: usize) -> anyhow::Result<String> {
        let (place, (from, to, currency), guests) = (PLACES[n % PLACES.len()], ROUTES[n % ROUTES.len()], n % 5 + 2);
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
        let guest = ["guest Bennett", "旅客 陳先生"].get(n % 6).map(|name| format!("{name} {}", n / 24 + 1));
        let body = json!({"agent": agent, "input": input, "conversation": guest});
        let task = self.send(Some(n % OMAR), Method::POST, "/v1/tasks", Some(body)).await?;
        Ok(format!("/v1/tasks/{}", task["task"].as_str().context("no task")?))
    }

    /// What other programs of the desk submit: prices that take long, rates from a service that is down, and wrong
    /// bookings. Returns the paths of those that run.
    async fn call_as_programs(&self) -> anyhow::Result<Vec<String>> {
        let rates = (0..10).map(|n| {
            let (.., currency) = ROUTES[n % ROUTES.len()];
            json!({"tool": "exchange_rate", "arguments": {"from": "USD", "to": currency}, "key": format!("rates-{n}")})
        });
        let prices = (0..6).map(|n| json!({"tool": "refresh_prices", "arguments": {"airlines": n + 3}}));
        let mut paths = Vec::new();
        for call in rates.chain(prices) {
            let call = self.send(Some(0), Method::POST, "/v1/calls", Some(call)).await?;
            paths.push(format!("/v1/calls/{}", call["call"].as_str().context("no call")?));
        }
        for (guests, at) in [(40, "2026-13-01"), (0, "tonight")] {
            let wrong =
                json!({"tool": "book_table", "arguments": {"restaurant": PLACES[1], "guests": guests, "at": at}});
            // It is answered with what is wrong, and on record as refused.
            let _refused = self.send(Some(0), Method::POST, "/v1/calls", Some(wrong)).await;
        }
        Ok(paths)
    }

    /// What a person does: counts what failed, runs it again now that the service is well, and corrects a call that was
    /// refused.
    async fn operate(&self) -> anyhow::Result<()> {
        let filter = json!({"tool": "exchange_rate", "state": "failed"});
        for dry_run in [true, false] {
            let order = json!({"filter": filter, "dry_run": dry_run, "rate": 5});
            self.send(Some(OMAR), Method::POST, "/v1/redrives", Some(order)).await?;
        }
        let path = "/v1/calls?tool=book_table&state=refused&page_size=100";
        let refused = self.send(Some(OMAR), Method::GET, path, None).await?;
        let mut bare = refused["calls"].as_array().into_iter().flatten().filter(|call| call["task"].is_null());
        let call = bare.next().and_then(|call| call["call"].as_str());
        let call = call.context("no refused call of book_table is on record")?;
        let arguments = json!({"restaurant": PLACES[1], "guests": 8, "at": "2026-12-24T19:00:00Z"});
        let corrected = Some(json!({"arguments": arguments}));
        self.send(Some(OMAR), Method::POST, &format!("/v1/calls/{call}/redrive"), corrected).await?;
        Ok(())
    }

    /// Sends a request as one of [`PEOPLE`], or as whoever reaches the gateway.
    async fn send(
        &self,
        person: Option<usize>,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(person) = person {
            request = request.bearer_auth(&self.tokens[person]);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await?;
        let status = response.status();
        let text = response.text().await?;
        ensure!(status.is_success(), "{path} answered {status}: {text}");
        serde_json::from_str(&text).with_context(|| format!("{path} answered {text}"))
    }
}
