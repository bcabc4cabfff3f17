//! Where the rows of calls lie: what a call costs hangs on that.

use std::collections::BTreeMap;

use redial_proto::{ClaimId, JobRef, WorkerId, WorkerIdentity};
use redial_records::{Claim, NewCall};
use uuid::Uuid;

use crate::fixture::{Fixture, bare_call};

/// Returns the page of each call.
async fn pages(fixture: &Fixture) -> BTreeMap<Uuid, i64> {
    let rows: Vec<(Uuid, i64)> =
        sqlx::query_as("SELECT id, (ctid::text::point)[0]::bigint FROM calls").fetch_all(&fixture.db).await.unwrap();
    rows.into_iter().collect()
}

/// A version on another page has to enter every index again.
#[tokio::test]
async fn a_claim_leaves_a_call_on_its_page_even_if_all_calls_of_the_page_are_claimed_at_once() {
    let fixture = Fixture::open().await;
    let arguments = format!(r#"{{"text": "{}"}}"#, "x".repeat(190));
    let calls: Vec<NewCall> = (0..200).map(|_| NewCall { arguments: arguments.clone(), ..bare_call() }).collect();
    fixture.store.submit(&calls, 10_000).await.unwrap();
    let before = pages(&fixture).await;
    let (claim, worker) = (ClaimId::generate(), WorkerId::generate(&WorkerIdentity::of_name("a-worker-with-a-name")));
    let claims: Vec<Claim> = calls
        .iter()
        .map(|call| Claim {
            job: JobRef { call: call.id, attempt: 1 },
            claim,
            worker: worker.clone(),
            tool: call.tool.clone(),
            not_after: chrono::Utc::now() + chrono::TimeDelta::hours(1),
        })
        .collect();
    assert_eq!(fixture.store.claim(&claims, 15_000).await.unwrap().len(), calls.len());
    assert_eq!(pages(&fixture).await, before);
}
