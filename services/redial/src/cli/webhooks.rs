//! What `redial webhooks` is told.

use clap::{Args, Subcommand};
use redial_proto::WebhookEvent;
use uuid::Uuid;

#[derive(Subcommand, Debug)]
pub(crate) enum WebhooksCommand {
    /// Subscribe a URL to the ends of calls and tasks; the answer has the secret that signs
    Create(CreateWebhookArgs),
    /// Give a webhook a new secret; for 24 hours deliveries are signed with both
    Rotate {
        /// The webhook's id
        id: Uuid,
    },
    /// Send a webhook the event webhook.ping; `redial show CALL` says what its receiver answered
    Test {
        /// The webhook's id
        id: Uuid,
    },
    /// Deliver nothing more, and drop what waits
    Disable {
        /// The webhook's id
        id: Uuid,
    },
    /// Deliver again what ends from now on
    Enable {
        /// The webhook's id
        id: Uuid,
    },
    /// Delete a webhook: what waits is dropped, and deliveries under way are cancelled
    Delete {
        /// The webhook's id
        id: Uuid,
    },
}

#[derive(Args, Debug)]
pub(crate) struct CreateWebhookArgs {
    /// Where events are posted: https://host/path; it is on record, so it should contain no secret
    pub(crate) url: String,
    /// Which events, such as call.failed or task.*; may be repeated
    #[arg(long = "event", value_name = "EVENT", required = true)]
    pub(crate) events: Vec<WebhookEvent>,
    /// Only calls of this tool; may be repeated [default: all tools]
    #[arg(long = "tool", value_name = "NAME")]
    pub(crate) tools: Vec<String>,
    /// Only tasks of this agent; may be repeated [default: all agents]
    #[arg(long = "agent", value_name = "NAME")]
    pub(crate) agents: Vec<String>,
    /// The webhook's id, with which the command can be repeated [default: a new one]
    #[arg(long, value_name = "UUID")]
    pub(crate) id: Option<Uuid>,
}
