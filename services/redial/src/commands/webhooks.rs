//! `redial webhooks`: subscriptions to the ends of calls and tasks.

use std::process::ExitCode;

use redial_proto::{
    ApiError, Code, CreateWebhook, DeleteWebhook, DeletedWebhook, RotateWebhook, TestWebhook, TestedWebhook,
    UpdateWebhook, WebhookSecret, WebhookState, WebhookView, subjects::Verb,
};
use redial_queue::Queue;
use serde::{Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::{
    cli::{CreateWebhookArgs, WebhooksCommand},
    connect,
    list::{self, Field},
    output,
    settings::Settings,
};

const FIELDS: &[Field<WebhookView>] = &[
    Field::whole("webhook", |webhook, _| webhook.webhook.to_string().into()),
    Field::whole("state", |webhook, _| {
        let reason = webhook.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("{}{reason}", webhook.state).into()
    }),
    Field::whole("secret", |webhook, _| format!("version {}", webhook.secret_version).into()),
    Field::shortened("events", 12, |webhook, _| {
        webhook.events.iter().map(|event| event.as_str()).collect::<Vec<_>>().join(" ").into()
    }),
    Field::shortened("url", 20, |webhook, _| webhook.url.clone().into()),
];

pub(crate) async fn run(settings: &Settings, wide: bool, command: Option<WebhooksCommand>) -> anyhow::Result<ExitCode> {
    let Some(command) = command else { return list(settings, wide).await };
    let queue = connect::queue(settings).await?;
    match command {
        WebhooksCommand::Create(args) => create(settings, &queue, args).await,
        WebhooksCommand::Rotate { id } => rotate(settings, &queue, id).await,
        WebhooksCommand::Test { id } => test(settings, &queue, id).await,
        WebhooksCommand::Disable { id } => set_state(settings, &queue, id, WebhookState::Disabled).await,
        WebhooksCommand::Enable { id } => set_state(settings, &queue, id, WebhookState::Active).await,
        WebhooksCommand::Delete { id } => delete(settings, &queue, id).await,
    }?;
    Ok(ExitCode::SUCCESS)
}

async fn list(settings: &Settings, wide: bool) -> anyhow::Result<ExitCode> {
    let (store, tenant) = (connect::store(settings).await?, settings.tenant()?);
    let webhooks = store.of(&tenant).webhooks().await?;
    if webhooks.is_empty() {
        output::note(format!("tenant {tenant} has no webhook; `redial webhooks create` makes one"));
    } else {
        list::print(settings, &store, FIELDS, &webhooks, wide).await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask<R: DeserializeOwned>(queue: &Queue, verb: Verb, request: &impl Serialize) -> anyhow::Result<R> {
    connect::request(queue, verb, request).await.map_err(connect::api)
}

/// Prints the text, or the answer as JSON.
fn print(settings: &Settings, answer: &impl Serialize, text: &str) -> anyhow::Result<()> {
    if settings.json() {
        output::json(answer)?;
    } else {
        output::line(text)?;
    }
    Ok(())
}

async fn create(settings: &Settings, queue: &Queue, args: CreateWebhookArgs) -> anyhow::Result<()> {
    let CreateWebhookArgs { url, events, tools, agents, id } = args;
    let request = CreateWebhook { webhook: id.unwrap_or_else(Uuid::new_v4), url, events, tools, agents };
    secret(settings, &ask(queue, Verb::WebhookCreate, &request).await?)
}

async fn rotate(settings: &Settings, queue: &Queue, webhook: Uuid) -> anyhow::Result<()> {
    let (store, tenant) = (connect::store(settings).await?, settings.tenant()?);
    let missing = || ApiError::new(Code::WebhookNotFound, format!("no webhook {webhook} is on record"));
    let version = store.of(&tenant).webhook(webhook).await?.ok_or_else(missing)?.view.secret_version;
    secret(settings, &ask(queue, Verb::WebhookRotate, &RotateWebhook { webhook, version }).await?)
}

fn secret(settings: &Settings, answer: &WebhookSecret) -> anyhow::Result<()> {
    let WebhookSecret { webhook, secret } = answer;
    print(settings, answer, &format!("webhook {}\nsecret  {secret}", webhook.webhook))?;
    output::note("keep the secret where the receiver verifies signatures: it is not on record");
    Ok(())
}

async fn test(settings: &Settings, queue: &Queue, webhook: Uuid) -> anyhow::Result<()> {
    let tested: TestedWebhook = ask(queue, Verb::WebhookTest, &TestWebhook { webhook }).await?;
    print(settings, &tested, &tested.call.to_string())?;
    output::note(format!("what its receiver answered: redial show {}", tested.call));
    Ok(())
}

async fn set_state(settings: &Settings, queue: &Queue, webhook: Uuid, state: WebhookState) -> anyhow::Result<()> {
    let request = UpdateWebhook { webhook, url: None, events: None, tools: None, agents: None, state: Some(state) };
    let view: WebhookView = ask(queue, Verb::WebhookUpdate, &request).await?;
    print(settings, &view, &format!("webhook {webhook} is {}", view.state))
}

async fn delete(settings: &Settings, queue: &Queue, webhook: Uuid) -> anyhow::Result<()> {
    let deleted: DeletedWebhook = ask(queue, Verb::WebhookDelete, &DeleteWebhook { webhook }).await?;
    let text =
        format!("webhook {webhook} is deleted; deliveries under way, which are being cancelled: {}", deleted.cancelled);
    print(settings, &deleted, &text)
}
