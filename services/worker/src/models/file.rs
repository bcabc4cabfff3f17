//! Models from a `models.toml`, each behind its provider's API.

use std::{path::Path, sync::Arc};

use futures_util::{FutureExt as _, future::BoxFuture};
use redial_llm::{FileErrors, Model};
use redial_proto::{Delta, ErrorClass, Failure, Finish, TurnReply, TurnRequest};
use redial_telemetry::{ChatReply, record_chat};
use redial_tools::{Context, Handler, Tool, ToolResult};
use serde_json::value::{RawValue, to_raw_value};

/// Loads the models of a file; `variable` gives the value of an environment variable.
pub(crate) fn load(path: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Tool>, FileErrors> {
    Ok(redial_llm::load_with(path, variable)?.into_iter().map(tool).collect())
}

/// Loads the models of a file, to check it; returns their names, each with the reason why it would fail now. `variable`
/// gives the value of an environment variable.
pub fn check_models(
    path: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<(String, Option<String>)>, FileErrors> {
    Ok(redial_llm::load_with(path, variable)?.iter().map(|model| (model.name().to_owned(), model.warning())).collect())
}

fn tool(model: Model) -> Tool {
    let (spec, concurrency, secrets) = (model.spec(), model.concurrency(), model.secrets());
    let mut tool = Tool::from_handler(spec, ModelHandler(Arc::new(model))).with_secrets(&secrets);
    tool.concurrency = concurrency;
    tool
}

struct ModelHandler(Arc<Model>);

impl Handler for ModelHandler {
    fn run(&self, context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        let model = Arc::clone(&self.0);
        async move {
            let request = request(&arguments)?;
            let turn = request.turn;
            let reply = model.ask(&request, |delta| context.delta(Delta { turn, ..delta })).await?;
            record(&reply);
            to_raw_value(&reply)
                .map_err(|error| Failure::new(ErrorClass::Internal, format!("the reply cannot be serialised: {error}")))
        }
        .boxed()
    }
}

fn request(arguments: &RawValue) -> Result<TurnRequest, Failure> {
    serde_json::from_str(arguments.get()).map_err(|error| {
        // A newer dispatcher wrote it: the attempts after this one may reach a newer worker.
        let message = format!("this version of the worker cannot read the request to the model: {error}");
        Failure::new(ErrorClass::Unavailable, message).without_effect()
    })
}

fn record(reply: &TurnReply) {
    let finish = match reply.finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Refused => "content_filter",
        Finish::Other => "other",
    };
    let (input_tokens, output_tokens) = (reply.usage.input_tokens, reply.usage.output_tokens);
    record_chat(ChatReply { model: &reply.model, finish, input_tokens, output_tokens });
}
