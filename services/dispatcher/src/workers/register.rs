//! Registers workers and their tools.

use std::{collections::BTreeSet, sync::Arc};

use redial_arguments::Schema;
use redial_engine::view::READ_RESULT;
use redial_proto::{ApiError, Code, Registration, ToolSpec, subjects, turn};
use redial_queue::QueueError;

use crate::{context::Context, error::store_failed, running::Running, wait::until};

pub(crate) async fn register(context: Arc<Context>, registration: Registration) -> Result<serde_json::Value, ApiError> {
    for tool in &registration.tools {
        let wrong = |what: String| ApiError::new(Code::InvalidManifest, format!("tool {:?}: {what}", tool.name));
        tool.check().map_err(wrong)?;
        check_kind(tool).map_err(wrong)?;
        Schema::compile(&tool.parameters).map_err(|error| wrong(error.to_string()))?;
    }
    let pools: BTreeSet<&str> = registration.tools.iter().map(|tool| tool.pool.as_str()).collect();
    for pool in pools {
        context.queue.ensure_pool(pool).await.map_err(QueueError::into_api)?;
    }
    let changed = context.store.register(&registration).await.map_err(|error| store_failed(&error))?;
    tracing::info!(worker = %registration.worker, tools = registration.tools.len(), ?changed, "Worker registered");
    context.registry.refresh(&context.store).await.map_err(|error| store_failed(&error))?;
    if !changed.is_empty()
        && let Err(error) = context.queue.publish(subjects::TOOLS_CHANGED, &()).await
    {
        tracing::debug!(%error, "Failed to notify other dispatchers of changed tools; they read them on demand");
    }
    Ok(serde_json::json!({}))
}

/// The pool of models holds models only, a prefix marks their names, and no worker registers a built-in tool.
fn check_kind(tool: &ToolSpec) -> Result<(), String> {
    let (prefix, pool) = (turn::tool_name(""), turn::POOL);
    match (turn::model_name(&tool.name), tool.pool == pool) {
        (Some(""), true) => Err(format!("{prefix:?} is not the name of a model; a name must follow it")),
        (None, true) => Err(format!("pool {pool:?} is for models; a name with the prefix {prefix:?} is needed")),
        (Some(_), false) => Err(format!("names with the prefix {prefix:?} are for models, in pool {pool:?}")),
        (None, false) if tool.name == READ_RESULT => Err("this is the name of a built-in tool; use another".to_owned()),
        _ => Ok(()),
    }
}

/// Reads the registry again when another dispatcher has recorded a changed tool.
pub(crate) async fn listen_for_changes(running: &Running) -> Result<(), QueueError> {
    let mut changes = running.context.queue.subscribe(subjects::TOOLS_CHANGED).await?;
    running.spawn(|context, shutdown| async move {
        while let Some(Some(_)) = until(&shutdown, changes.next()).await {
            if let Err(error) = context.registry.refresh(&context.store).await {
                tracing::warn!(%error, "Failed to reload the registry");
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_and_tools_keep_apart() {
        let kind = |name: &str, pool: &str| check_kind(&ToolSpec { pool: pool.to_owned(), ..ToolSpec::named(name) });
        assert_eq!(kind("model-small", turn::POOL), Ok(()));
        assert_eq!(kind("get_weather", "default"), Ok(()));
        assert_eq!(kind("modelling", "default"), Ok(()));
        for (name, pool) in
            [("model-small", "default"), ("get_weather", turn::POOL), ("model-", turn::POOL), (READ_RESULT, "default")]
        {
            assert!(kind(name, pool).is_err(), "{name} in {pool}");
        }
    }
}
