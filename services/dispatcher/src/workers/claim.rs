//! Grants attempts to workers: one statement for all claims that are waiting.

use std::{collections::HashMap, sync::Arc, time::Duration};

use chrono::Datelike as _;
use redial_proto::{
    ApiError, ClaimId, ClaimJob, ClaimReply, ClaimRequest, Code, Grant, JobRef, WorkerCaller, WorkerId, limits,
    subjects::ControlVerb, turn::model_name,
};
use redial_queue::{QueueError, Request};
use redial_records::{Claim, TurnOnRecord};
use redial_store::{AskedTurn, Granted, TurnRoom};
use redial_telemetry::metrics;
use serde_json::value::RawValue;

use super::{recheck, release, returned};
use crate::{
    batcher::{BatchWork, Batching},
    context::Context,
    error::store_failed,
    registry::Served,
    running::Running,
    serve::{self, Senders},
};

pub(crate) async fn start(running: &Running) -> Result<(), QueueError> {
    let requests = serve::start_batcher(
        running,
        Batching { name: "grant claims", workers: 3, batch: 16 },
        &Granter(running.context.clone()),
    );
    serve::feed(running, Senders::Workers(ControlVerb::Claim), requests).await
}

#[derive(Clone)]
struct Granter(Arc<Context>);

impl BatchWork<Request> for Granter {
    async fn work(&self, batch: Vec<Request>) {
        let mut read_requests = Vec::with_capacity(batch.len());
        for request in batch {
            match read(&request) {
                Ok((caller, claim)) => read_requests.push((request, caller, claim)),
                Err(error) => request.reply_error(&error).await,
            }
        }
        let served = self.served(&read_requests).await;
        let (mut claims, mut given_back) = (Vec::new(), Vec::new());
        let mut asked = Vec::with_capacity(read_requests.len());
        for (request, caller, ClaimRequest { claim, worker, not_after, jobs, returned }) in read_requests {
            let of_caller = returned.into_iter().filter(|back| returned::may_return(&self.0, &served, &caller, back));
            given_back.extend(of_caller.map(|back| (claim, back)));
            let (jobs, refused): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| may_serve(&served, &caller, job));
            if let Some(ClaimJob { call, tool, .. }) = refused.first() {
                let (identity, pools, jobs) = (caller.identity.as_str(), caller.pools(), refused.len());
                // Only what the sender does not choose: what differs is a line of its own, and the same one is counted.
                tracing::warn!(identity, pools, jobs, "Refused a claim of tools that the worker may not serve");
                tracing::debug!(%worker, %call, tool = limits::shorten(tool, 100), "Refused a claim");
            }
            let one = |job: ClaimJob| {
                let (job, tool) = (job.job_ref(), job.tool);
                Claim { job, claim, worker: worker.clone(), tool, not_after }
            };
            claims.extend(jobs.into_iter().map(one));
            asked.push(AskedClaim { request, claim, worker });
        }
        metrics().batch_size("claim", claims.len());
        let granted = match self.0.store.claim(&claims, self.0.config.lease_ms()).await {
            Ok(granted) => {
                let grants = returned::grants_of(&granted);
                recheck::fitting(&self.0, granted).await.map(|granted| (granted, grants))
            }
            Err(error) => Err(store_failed(&error)),
        };
        match granted {
            Ok((mut granted, grants)) => {
                self.put_turns_together(&mut granted).await;
                self.answer(asked, granted).await;
                returned::publish(&self.0, given_back, grants).await;
            }
            // What the workers gave back stays on the stream: they acknowledge nothing.
            Err(error) => {
                for AskedClaim { request, .. } in asked {
                    request.reply_error(&error).await;
                }
            }
        }
    }
}

/// What may be read of conversations for one batch of claims, which those of all tenants wait for: a short request may show the ends
/// of many long results.
const ROOM: TurnRoom = TurnRoom { each: 2 * 1024 * 1024, together: 16 * 1024 * 1024 };

/// A claim that waits for its answer.
struct AskedClaim {
    request: Request,
    claim: ClaimId,
    worker: WorkerId,
}

/// Says whether the worker's identity may serve the tool, and its credentials cover the tool's pool. What is not
/// claimed waits, and is published again.
fn may_serve(served: &Served, caller: &WorkerCaller, job: &ClaimJob) -> bool {
    served.pool_of(&job.tool, &caller.identity).is_some_and(|pool| caller.may_serve(pool))
}

fn allows_all(served: &Served, requests: &[(Request, WorkerCaller, ClaimRequest)]) -> bool {
    requests.iter().all(|(_, caller, claim)| claim.jobs.iter().all(|job| may_serve(served, caller, job)))
}

/// The registry is read again for a claim that it does not allow, but not more often than this: a worker that may not serve a tool
/// can claim it as often as it likes.
const REGISTRY_AGE: Duration = Duration::from_secs(1);

fn read(request: &Request) -> Result<(WorkerCaller, ClaimRequest), ApiError> {
    let caller = serve::worker_caller(request)?;
    let claim: ClaimRequest = serve::of_worker(request)?;
    serve::check_own(&caller, &claim.worker)?;
    if claim.jobs.len() > limits::MAX_CLAIM {
        let message = format!("jobs holds {} entries; allowed: {}", claim.jobs.len(), limits::MAX_CLAIM);
        return Err(ApiError::new(Code::TooLarge, message));
    }
    if claim.returned.len() > limits::MAX_CLAIM {
        let message = format!("returned holds {} packs; allowed: {}", claim.returned.len(), limits::MAX_CLAIM);
        return Err(ApiError::new(Code::TooLarge, message));
    }
    if !limits::YEARS.contains(&claim.not_after.year()) {
        let message = format!("not_after is {}; a time in the years {:?} is needed", claim.not_after, limits::YEARS);
        return Err(ApiError::new(Code::InvalidMessage, message));
    }
    Ok((caller, claim))
}

impl Granter {
    /// Says who may serve which tool. A tool may have been accepted a moment ago, and the notice is still on its way.
    async fn served(&self, requests: &[(Request, WorkerCaller, ClaimRequest)]) -> Served {
        let served = self.0.registry.served();
        if allows_all(&served, requests) {
            return served;
        }
        if let Err(error) = self.0.registry.refresh_older_than(REGISTRY_AGE, &self.0.store).await {
            tracing::debug!(%error, "Failed to reload the registry for a claim");
        }
        self.0.registry.served()
    }

    /// Puts together what models are asked. What is too large, or cannot be read now, the workers ask for apart.
    async fn put_turns_together(&self, granted: &mut [Granted]) {
        let (mut grants, mut turns) = (Vec::new(), Vec::new());
        for grant in granted.iter_mut().filter(|grant| model_name(&grant.tool).is_some()) {
            let (Some(task), Some(conversation), Some(arguments)) =
                (grant.task, grant.conversation.clone(), grant.arguments.take())
            else {
                continue;
            };
            match TurnOnRecord::bytes_of(&arguments) {
                Some(bytes) if bytes as usize <= limits::MAX_INLINE => {
                    turns.push(AskedTurn { tenant: grant.tenant.clone(), conversation, task, arguments });
                    grants.push(grant);
                }
                Some(_) => {}
                None => grant.arguments = Some(arguments),
            }
        }
        if turns.is_empty() {
            return;
        }
        match self.0.store.expand_turns(&turns, ROOM).await {
            Ok(expanded) => {
                for (grant, expanded) in grants.into_iter().zip(expanded) {
                    match expanded {
                        Ok(expanded) => grant.arguments = Some(expanded.request),
                        // Its worker is told why when it asks for it apart.
                        Err(why) => tracing::debug!(call = %grant.job.call, ?why, "Left a turn to be opened"),
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "Failed to put turns together; their workers ask again"),
        }
    }

    async fn answer(&self, asked: Vec<AskedClaim>, granted: Vec<Granted>) {
        metrics().calls_claimed(granted.len() as u64);
        self.0.feeder.claimed(&granted);
        let mut by_claim = HashMap::<ClaimId, Vec<Granted>>::new();
        for grant in granted {
            metrics().queue_age(Duration::from_millis(grant.ready_ms));
            by_claim.entry(grant.claim).or_default().push(grant);
        }
        for AskedClaim { request, claim, worker } in asked {
            // A worker that gets no answer asks again, so a batch may hold a claim twice: each copy gets the whole answer,
            // because only its sender knows which one it still waits for.
            let mut granted = by_claim.get(&claim).cloned().unwrap_or_default();
            // Another dispatcher may answer another copy: the same grants must not fit there, because they are released.
            granted.sort_unstable_by_key(|grant| grant.job.call);
            let (grants, too_many) = fit_message(granted);
            request.reply(&ClaimReply { lease_ms: self.0.config.lease_ms(), grants }).await;
            if !too_many.is_empty() {
                // Only a worker that ignores the jobs' sizes gets here.
                let too_many: Vec<_> = too_many.into_iter().map(|job| job.granted_to(claim)).collect();
                release::release(&self.0, &worker, &too_many).await;
            }
        }
    }
}

/// Returns as many grants as fit one message, and the attempts of the others.
fn fit_message(granted: Vec<Granted>) -> (Vec<Grant>, Vec<JobRef>) {
    const ENVELOPE: usize = 600;
    let (mut grants, mut too_many, mut size) = (Vec::with_capacity(granted.len()), Vec::new(), 0);
    for grant in granted {
        let bytes = grant.arguments.as_ref().map(String::len);
        size += bytes.unwrap_or(0) + ENVELOPE;
        let job = grant.job;
        if size > limits::MAX_MESSAGE && !grants.is_empty() {
            too_many.push(job);
        } else if let Some(grant) = wire(grant) {
            grants.push(grant);
        } else {
            tracing::error!(call = %job.call, "Left out a grant whose arguments on record are not JSON");
        }
    }
    (grants, too_many)
}

fn wire(granted: Granted) -> Option<Grant> {
    Some(Grant {
        call: granted.job.call,
        attempt: granted.job.attempt,
        tool: granted.tool,
        apart: granted.arguments.is_none(),
        arguments: granted.arguments.map_or_else(|| Ok(RawValue::NULL.to_owned()), RawValue::from_string).ok()?,
        timeout_ms: granted.timeout_ms,
        effect: granted.effect,
        idempotency_key: granted.origin.to_string(),
        conversation: granted.conversation,
        tenant: granted.tenant,
        task: granted.task,
        traceparent: granted.traceparent,
    })
}
