//! Whether the gateway lives and can answer, and what it counts.

use std::time::Duration;

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use prometheus_client::encoding::prometheus_text;
use redial_proto::{
    DispatcherHealth, Door, Tenant, User, UserRole,
    subjects::{self, Verb},
};

use crate::{
    endpoint::Endpoint,
    gateway::{Api, Gateway, Shared},
    last_look::{Health, PartHealth},
};

/// How long each part may take to answer.
const LOOK: Duration = Duration::from_secs(2);
const TAG: &str = "operations";

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
    let mut health = gateway.last_look.answer(Box::pin(look(&gateway))).await;
    health.ready &= !gateway.shutdown.is_cancelled();
    let status = if health.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, axum::Json(health)).into_response()
}

/// Asks every part. What does not answer is not available, whatever the reason.
async fn look(gateway: &Gateway) -> Health {
    let subject = subjects::api(Door::Http, &Tenant::default(), &User::default(), UserRole::Read, Verb::Health);
    let question = serde_json::json!({});
    let (postgres, dispatcher) = tokio::join!(
        tokio::time::timeout(LOOK, gateway.store.now()),
        gateway.queue.request::<_, DispatcherHealth>(&subject, &question, LOOK),
    );
    let parts = [matches!(postgres, Ok(Ok(_))), gateway.queue.is_connected(), dispatcher.is_ok()];
    let jobs_fail_since = dispatcher.ok().and_then(|health| health.jobs_fail_since);
    let ready = parts == [true; 3] && jobs_fail_since.is_none();
    let [postgres, nats, dispatcher] = parts.map(|ok| if ok { PartHealth::Ok } else { PartHealth::Unavailable });
    Health { ready, postgres, nats, dispatcher, jobs_fail_since }
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
