//! Two command tools: a program of the system, and a script that says in JSON what went wrong.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::{record::Submitted, stage::Stage};

pub(super) async fn play(stage: &Stage) -> anyhow::Result<String> {
    let weekday = stage.cli.run(&["call", "weekday", r#"{"date": "2026-11-20"}"#, "--wait"]).await?.expect_success()?;
    ensure!(weekday.stdout.contains("Friday"), "2026-11-20 is said to be a {}", weekday.stdout.trim());

    let arguments = json!({"amount": 100, "from": "USD", "to": "CNY"}).to_string();
    let money = stage.cli.run(&["call", "convert_currency", &arguments, "--wait"]).await?.expect_success()?;
    let money: Value = money.json()?;
    ensure!(money == json!({"amount": 710.0, "currency": "CNY"}), "100 USD are said to be {money}");

    let arguments = json!({"amount": 100, "from": "USD", "to": "XYZ"}).to_string();
    let submitted: Submitted = stage.cli.json(&["call", "convert_currency", &arguments]).await?;
    let call = stage.end_of(&submitted.call()?).await?;
    let message = call.message.as_deref().unwrap_or_default();
    ensure!(call.outcomes() == ["business_rule"], "the attempts ended as {:?}", call.outcomes());
    ensure!(message.starts_with("no rate for XYZ"), "the error says {message:?}");
    Ok(format!(
        "`date`: 2026-11-20 is a Friday; a script: 100 USD are {} CNY; its JSON error for XYZ is a business_rule, not retried",
        money["amount"]
    ))
}
