//! Whether the gateway lives and can answer, and what it counts.

use std::time::Duration;

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use prometheus_client::encoding::prometheus_text;
use redial_proto::{
    CallId, CallView, Code, GetRequest, Language, Tenant, User, UserRole,
    subjects::{self, Verb},
};
use redial_queue::QueueError;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::{
    endpoint::Endpoint,
    gateway::{Api, Gateway, Shared},
};

/// How long each part may take to answer.
const LOOK: Duration = Duration::from_secs(2);
const TAG: &str = "operations";

/// Which parts answer.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// Whether requests can be answered.
    ready: bool,
    /// Postgres.
    postgres: PartHealth,
    /// NATS.
    nats: PartHealth,
    /// At least one dispatcher.
    dispatcher: PartHealth,
}

/// Whether a part answers.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PartHealth {
    /// It answers.
    Ok,
    /// It does not.
    Unavailable,
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/healthz", async || "ok\n")
            .about(TAG, "get_health", "Whether the process lives")
            .answer_as::<String>(200, "It does.", "text/plain"),
        Endpoint::get("/readyz", ready)
            .about(TAG, "get_readiness", "Whether requests can be answered")
            .answer::<Health>(200, "They can.")
            .answer::<Health>(503, "They cannot; the parts say why."),
        Endpoint::get("/metrics", metrics)
            .about(TAG, "get_metrics", "What this gateway counts, and figures of the record, for Prometheus")
            .roles(&[UserRole::Read])
            .answer_as::<String>(200, "The text format of Prometheus.", "text/plain"),
    ]
}

async fn ready(State(gateway): State<Shared>) -> Response {
    let ask = async {
        let (postgres, dispatcher) =
            tokio::join!(tokio::time::timeout(LOOK, gateway.store.now()), dispatcher_answers(&gateway));
        [matches!(postgres, Ok(Ok(_))), gateway.queue.is_connected(), dispatcher]
    };
    let parts = gateway.last_look.parts(Box::pin(ask)).await;
    let [postgres, nats, dispatcher] = parts.map(|ok| if ok { PartHealth::Ok } else { PartHealth::Unavailable });
    let ready = parts == [true; 3] && !gateway.shutdown.is_cancelled();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, axum::Json(Health { ready, postgres, nats, dispatcher })).into_response()
}

/// Whether a dispatcher answers: to a question about a call that nobody has.
async fn dispatcher_answers(gateway: &Gateway) -> bool {
    let nobody = GetRequest { call: CallId(Uuid::nil()), language: Language::default() };
    let subject = subjects::api(&Tenant::default(), &User::default(), UserRole::Read, Verb::CallGet);
    match gateway.queue.request::<_, CallView>(&subject, &nobody, LOOK).await {
        Ok(_) => true,
        Err(QueueError::Api(error)) => error.code != Code::Unavailable,
        Err(_) => false,
    }
}

async fn metrics(Api { gateway, who }: Api) -> Response {
    // Which requests all tenants send is for that of the operators.
    let of_all = (who.tenant == Tenant::default()).then_some(&gateway.refusals);
    let mut page = gateway.stats.page(gateway.hub.waiters(), of_all);
    match gateway.figures.lines(&gateway.store, &who.tenant).await {
        Ok(lines) => page.push_str(&lines),
        // What this process counts is told during an outage, too.
        Err(error) => tracing::warn!(%error, "The figures of the record could not be read for a scrape"),
    }
    ([(header::CONTENT_TYPE, prometheus_text::CONTENT_TYPE)], page).into_response()
}
