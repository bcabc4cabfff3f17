//! Registers workers and their tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use chrono::Datelike as _;
use redial_arguments::Schema;
use redial_engine::{accept::check_texts, pinning::judge, tools::MAX_SCHEMAS, view::READ_RESULT};
use redial_proto::{
    ApiError, Code, Registered, Registration, WorkerCaller, contract::are_neighbours, limits, subjects,
    tool::check_name, turn, webhook,
};
use redial_queue::QueueError;
use redial_store::{FullPool, StoreError};
use tokio::time::{Instant, timeout};

use crate::{
    aside::aside, context::Context, error::store_failed, feed::look_at_workers, running::Running, serve::check_own,
    wait::until,
};

pub(crate) async fn register(
    context: Arc<Context>,
    caller: WorkerCaller,
    registration: Registration,
) -> Result<Registered, ApiError> {
    check_own(&caller, &registration.worker)?;
    agree(context.queue.contract(), &registration)?;
    check_pools(&caller, &registration)?;
    // First, because it costs less than the check of many schemas.
    context.store.check_workers(&registration.worker).await.map_err(|error| match error {
        StoreError::TooManyWorkers(most) => too_many_workers(&caller, most),
        error => store_failed(&error),
    })?;
    check_aside(&context, &caller, &registration).await?;
    let accept_all = context.config.accept_tools;
    let judge = |on_record: &_, spec: &_| judge(on_record, spec, &caller.identity, accept_all);
    let registered = context.store.register(&registration, context.config.live_ms(), judge).await;
    let on_record = Instant::now();
    let mut registered = registered.map_err(|error| match error {
        StoreError::FullPool(pool) => full_pool(&pool),
        StoreError::TooManyTools(most) => {
            too_many(&caller, &format!("may have at most {most} tools"), "redial tools forget")
        }
        StoreError::TooLargeTools(most) => {
            too_many(&caller, &format!("may have tools of at most {most} bytes"), "redial tools forget")
        }
        StoreError::TooManyPending(most) => too_many(
            &caller,
            &format!("may have at most {most} tools that wait for an operator"),
            "redial tools accept",
        ),
        error => store_failed(&error),
    })?;
    // Before the reply, because the worker pulls from them at once.
    for consumer in registered.consumers.values() {
        context.queue.ensure_jobs(consumer).await.map_err(QueueError::into_api)?;
    }
    let (tools, changed) = (registration.tools.len(), &registered.changed_tools);
    tracing::info!(worker = %registration.worker, tools, ?changed, "Worker registered");
    for (tool, changes) in &registered.unasked {
        tracing::warn!(
            tool,
            identity = caller.identity.as_str(),
            ?changes,
            "Accepted a tool without asking an operator"
        );
    }
    for (tool, reasons) in &registered.waiting {
        let identity = caller.identity.as_str();
        tracing::warn!(tool, identity, ?reasons, "A tool waits until an operator accepts it; see redial tools");
    }
    if !registered.changed_tools.is_empty() {
        context.registry.refresh(&context.store).await.map_err(|error| store_failed(&error))?;
    }
    if let Err(error) = look_at_workers(&context, false, on_record).await {
        tracing::debug!(%error, "Failed to look at the workers; the feeder does within a second");
    }
    context.feeder.recheck();
    // Also if no tool changed: calls may wait for this worker.
    if let Err(error) = context.queue.publish(subjects::TOOLS_CHANGED, &()).await {
        tracing::debug!(%error, "Failed to notify other dispatchers of a worker; they look once a second");
    }
    shorten(&mut registered.waiting);
    // Last, because the worker counts from it.
    let at = context.store.now().await.map_err(|error| store_failed(&error))?;
    let lease_ms = context.config.lease_ms();
    Ok(Registered { consumers: registered.consumers, waiting: registered.waiting, at, lease_ms })
}

/// Checks that this dispatcher works with the worker; an error says which of the two is too old.
fn agree(ours: u32, registration: &Registration) -> Result<(), ApiError> {
    let theirs = registration.contract;
    if are_neighbours(ours, theirs) {
        return Ok(());
    }
    let remedy = if theirs < ours {
        "the worker is too old: start one of a newer version"
    } else {
        "the worker is too new: replace the dispatchers first"
    };
    let (identity, version) = (registration.worker.identity(), limits::shorten(&registration.version, 50));
    tracing::warn!(%identity, theirs, ours, "Refused a worker whose version does not fit");
    let message = format!(
        "this dispatcher has version {ours} of the contract, the worker (version {version:?}) has {theirs}, and only neighbours work \
         together; {remedy}"
    );
    Err(ApiError::new(Code::IncompatibleVersion, message))
}

/// Bytes of reasons in a reply, which must fit into a message as the registration did. The others are with `redial tools`.
const MAX_REASONS: usize = 200_000;

fn shorten(waiting: &mut BTreeMap<String, Vec<String>>) {
    let mut room = MAX_REASONS;
    for reasons in waiting.values_mut() {
        reasons.retain(|reason| {
            let size = reason.len() + 10;
            let fits = size <= room;
            room = if fits { room - size } else { 0 };
            fits
        });
    }
}

/// Refuses a flood of tools, and logs it for the operator.
fn too_many(caller: &WorkerCaller, what: &str, remedy: &str) -> ApiError {
    let identity = caller.identity.as_str();
    tracing::warn!(identity, reason = what, remedy, "Refused a registration");
    let message = format!("worker identity {identity:?} {what}, so nothing was registered; `{remedy}` makes room");
    ApiError::new(Code::Forbidden, message)
}

fn too_many_workers(caller: &WorkerCaller, most: u32) -> ApiError {
    let identity = caller.identity.as_str();
    tracing::warn!(identity, most, "Refused a worker of an identity that has as many as it may have");
    let message = format!(
        "worker identity {identity:?} has {most} workers that are alive, which is the most allowed, so this one was not registered; stop \
         some, or give it another identity: one more [workers.NAME] in the access file, `redial nats-config`, and REDIAL_WORKER_NAME. \
         One that has ended counts until its lease is over; the worker tries again until then"
    );
    // It passes once others have ended.
    ApiError::new(Code::Unavailable, message)
}

fn full_pool(FullPool { pool, most, identity }: &FullPool) -> ApiError {
    let which = match identity {
        None => format!("pool {pool:?} has {most} different sets of tools, which is the most allowed"),
        Some(identity) => format!(
            "worker identity {identity:?} has {most} different sets of tools in pool {pool:?}, which is the most for an identity \
             that shares a pool"
        ),
    };
    let message = format!(
        "{which}; give workers with other tools a pool of their own, or give all workers of this pool the same tools. A set is \
         free 2 minutes after its last worker was seen; the worker tries again until then"
    );
    // It passes once workers are gone, as those of an older version are after a deploy.
    ApiError::new(Code::Unavailable, message)
}

/// Checks that a worker serves only pools of its credentials.
fn check_pools(caller: &WorkerCaller, registration: &Registration) -> Result<(), ApiError> {
    let here = registration.tools.iter().map(|tool| (&tool.name, &tool.pool));
    let Some((name, pool)) = here.chain(&registration.other_tools).find(|(_, pool)| !caller.may_serve(pool)) else {
        return Ok(());
    };
    let (name, pool) = (limits::shorten(name, 100), limits::shorten(pool, 100));
    let message = format!(
        "tool {name:?} is in pool {pool:?}; the pools of worker identity {:?} are {}; add it to `pools` of this worker in the \
         access file, run `redial nats-config`, and start the worker with the new REDIAL_WORKER_POOLS",
        caller.identity.as_str(),
        limits::shorten(caller.pools(), 200)
    );
    Err(ApiError::new(Code::Forbidden, message))
}

/// A worker has at most so many pools: each has a consumer, which every dispatcher looks at once a second.
const MAX_POOLS: usize = 256;

/// Compiles schemas. The largest allowed ones take long, so few do so at once, and not where others wait.
async fn check_aside(context: &Context, caller: &WorkerCaller, registration: &Registration) -> Result<(), ApiError> {
    let _share = context.checking.take(caller.identity.as_str(), 1).await;
    let names = registration.tools.iter().map(|tool| tool.name.as_str()).collect::<BTreeSet<_>>();
    let others = context.registry.served().memory_without(&caller.identity, &names);
    let checked = aside(|| check(registration, others));
    checked.map_err(|what| ApiError::new(Code::InvalidManifest, limits::shorten(&what, limits::MAX_ERROR_MESSAGE)))
}

/// Says what is wrong with a registration. `memory`: what the schemas of the identity's other tools take, in bytes.
fn check(registration: &Registration, mut memory: u64) -> Result<(), String> {
    let mut names = BTreeSet::new();
    let mut pools = BTreeSet::new();
    for tool in &registration.tools {
        let wrong = |what: String| format!("tool {:?}: {what}", limits::shorten(&tool.name, 100));
        tool.check().map_err(wrong)?;
        check_kind(&tool.name, &tool.pool).map_err(wrong)?;
        memory += Schema::compile(&tool.parameters).map_err(|error| wrong(error.to_string()))?.memory();
        if memory > MAX_SCHEMAS {
            return Err(wrong(format!(
                "with it, the schemas of all tools of this worker identity take about {memory} bytes of memory; at most \
                 {MAX_SCHEMAS} are allowed. Use fewer or smaller regular expressions and schemas, or run \
                 `redial tools forget` for tools that are not needed"
            )));
        }
        if !names.insert(&tool.name) {
            return Err(wrong("it is there twice; names are unique".to_owned()));
        }
        pools.insert(&tool.pool);
    }
    for (name, pool) in &registration.other_tools {
        let wrong = |what: String| format!("tool {:?}: {what}", limits::shorten(name, 100));
        check_name("tool name", name).and_then(|()| check_name("pool", pool)).map_err(wrong)?;
        check_kind(name, pool).map_err(wrong)?;
        pools.insert(pool);
    }
    if pools.len() > MAX_POOLS {
        return Err(format!("its tools are in {} pools; at most {MAX_POOLS} are allowed", pools.len()));
    }
    let mut slots = registration.pools.values().chain([&registration.slots]);
    if let Some(slots) = slots.find(|slots| **slots > limits::MAX_SLOTS) {
        return Err(format!("it has {slots} slots; at most {} are allowed", limits::MAX_SLOTS));
    }
    if !(1970..=9999).contains(&registration.started_at.year()) {
        return Err(format!("started_at is {}; a time in the years 1970 to 9999 is needed", registration.started_at));
    }
    let version = Some(&registration.version).filter(|version| !version.is_empty());
    let host = registration.host.as_ref();
    check_texts(&[("version", version), ("host", host)]).map_err(|error| error.message)
}

/// Checks that the pool of models holds only models, that a prefix marks them, and that no tool is a built-in one.
fn check_kind(name: &str, of: &str) -> Result<(), String> {
    let (prefix, pool) = (turn::tool_name(""), turn::POOL);
    match (turn::model_name(name), of == pool) {
        (Some(""), true) => Err(format!("{prefix:?} is not the name of a model; a name must follow it")),
        (None, true) => Err(format!("pool {pool:?} is for models; a name with the prefix {prefix:?} is needed")),
        (Some(_), false) => Err(format!("names with the prefix {prefix:?} are for models, in pool {pool:?}")),
        (None, false) if name == webhook::TOOL && of != webhook::POOL => {
            Err(format!("this is the tool that delivers webhooks, in pool {:?}; use another name", webhook::POOL))
        }
        (None, false) if name == READ_RESULT => Err("this is the name of a built-in tool; use another".to_owned()),
        _ => Ok(()),
    }
}

/// How long an old registry may be used if the notice of its change was lost: a dispatcher gets none while it reconnects, and
/// whoever changed the registry may die before it sends one.
const LONGEST_AGE: Duration = Duration::from_secs(15);

/// Rereads the registry and looks at workers on notice of a registration; rereads the registry now and then anyway.
pub(crate) async fn listen_for_changes(running: &Running) -> Result<(), QueueError> {
    let mut changes = running.context.queue.subscribe(subjects::TOOLS_CHANGED).await?;
    running.spawn(subjects::TOOLS_CHANGED, |context, shutdown| async move {
        while let Some(change) = until(&shutdown, timeout(LONGEST_AGE, changes.next())).await {
            let told = change.is_ok();
            // One look is enough for all that registered meanwhile, as in a rolling deploy.
            changes.skip_arrived();
            if let Err(error) = context.registry.refresh(&context.store).await {
                tracing::warn!(%error, "Failed to reload the registry");
            }
            if !told {
                continue;
            }
            if let Err(error) = look_at_workers(&context, false, Instant::now()).await {
                tracing::debug!(%error, "Failed to look at the workers; the feeder does within a second");
            }
            context.feeder.recheck();
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use redial_proto::{CONTRACT, ToolSpec};

    use super::*;

    fn registration(tools: Vec<ToolSpec>) -> Registration {
        Registration {
            worker: "w".parse().unwrap(),
            started_at: chrono::DateTime::UNIX_EPOCH,
            slots: 1,
            pools: BTreeMap::new(),
            version: String::new(),
            contract: CONTRACT,
            host: None,
            tools,
            other_tools: BTreeMap::new(),
        }
    }

    #[test]
    fn models_and_tools_keep_apart() {
        assert_eq!(check_kind("model-small", turn::POOL), Ok(()));
        assert_eq!(check_kind("get_weather", "default"), Ok(()));
        assert_eq!(check_kind("modelling", "default"), Ok(()));
        assert_eq!(check_kind(webhook::TOOL, webhook::POOL), Ok(()));
        for (name, pool) in [
            ("model-small", "default"),
            ("get_weather", turn::POOL),
            ("model-", turn::POOL),
            (READ_RESULT, "default"),
            (webhook::TOOL, "default"),
        ] {
            assert!(check_kind(name, pool).is_err(), "{name} in {pool}");
        }
    }

    #[test]
    fn an_identity_may_not_bring_more_schemas_than_a_dispatcher_can_keep() {
        let costly = |n| ToolSpec {
            parameters: serde_json::json!({"properties": {"a": {"pattern": format!("^\\p{{L}}{{1,130}}{n}$")}}}),
            ..ToolSpec::named(format!("t{n}"))
        };
        let registration = |count| registration((0..count).map(costly).collect());
        assert_eq!(check(&registration(1), 0), Ok(()));
        let more = check(&registration(40), 0).unwrap_err();
        assert!(more.contains("bytes of memory") && more.starts_with("tool \"t1"), "{more}");
        let others = check(&registration(1), MAX_SCHEMAS).unwrap_err();
        assert!(others.starts_with("tool \"t0\""), "{others}");
    }

    #[test]
    fn a_registration_that_cannot_be_written_is_refused_with_the_reason() {
        type Change<'a> = &'a dyn Fn(&mut Registration);
        let tool = |name: &str, pool: &str| ToolSpec { pool: pool.to_owned(), ..ToolSpec::named(name) };
        let other_tools = [("b".to_owned(), "default".to_owned())].into();
        let good = Registration { other_tools, ..registration(vec![tool("a", "default")]) };
        assert_eq!(check(&good, 0), Ok(()));
        let pools: BTreeMap<_, _> = (0..=MAX_POOLS).map(|n| (format!("t{n}"), format!("p{n}"))).collect();
        let long = (0x20000..0x20040).filter_map(char::from_u32).collect::<String>();
        let model = || ("model-x".to_owned(), "default".to_owned());
        let slots = |slots| BTreeMap::from([("default".to_owned(), slots)]);
        let rows: [(Change<'_>, &str); 9] = [
            (&|one| one.version = "1\0".to_owned(), "version is \"1\\0\""),
            (&|one| one.host = Some("1\0".to_owned()), "host is \"1\\0\""),
            (&|one| one.started_at = chrono::DateTime::<chrono::Utc>::MIN_UTC, "started_at is -262143"),
            (&|one| one.slots = u32::MAX, "it has 4294967295 slots; at most 1000000 are allowed"),
            (&|one| one.pools = slots(1_000_001), "it has 1000001 slots"),
            (&|one| one.tools = vec![tool("a", "p"), tool("a", "q")], "tool \"a\": it is there twice"),
            (&|one| one.other_tools.clone_from(&pools), "its tools are in 258 pools; at most 256 are allowed"),
            (&|one| one.tools = vec![tool("a", &long)], "at most 192 bytes"),
            (&|one| one.other_tools = [model()].into(), "names with the prefix"),
        ];
        for (change, wanted) in rows {
            let mut registration = good.clone();
            change(&mut registration);
            let found = check(&registration, 0).unwrap_err();
            assert!(found.contains(wanted), "{found}");
        }
    }
}
