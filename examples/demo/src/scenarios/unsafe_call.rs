//! A worker is killed after an `unsafe` tool has charged a card, but before it could report. Redial cannot know whether
//! the card was charged, so it does not run the tool again.

use anyhow::ensure;

use crate::{poll::until, record::Submitted, stack::Stack};

pub(super) async fn run(stack: &mut Stack) -> anyhow::Result<String> {
    let submitted: Submitted = stack.cli.json(&["call", "charge_card", r#"{"amount_cny": 780}"#]).await?;
    let id = submitted.call()?;
    let charged = async || Ok(stack.ledgers.charges()?.into_iter().next());
    let charge = until("the card is charged", charged).await?;
    stack.workers.kill(&charge.client).await?;

    let call = stack.wait_for_call(&id).await?;
    ensure!(call.state == "unknown", "the call ended as {}", call.state);
    ensure!(call.outcomes() == ["lost"], "the attempts ended as {:?}", call.outcomes());
    let count = stack.ledgers.charges()?.len();
    ensure!(count == 1, "the card was charged {count} times");
    stack.start_worker(&charge.client)?;
    stack.wait_for_tools().await?;
    Ok(format!(
        "{} killed after it charged the card and before it reported: the call ended unknown, nothing ran again; 1 charge",
        charge.client
    ))
}
