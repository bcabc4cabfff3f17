//! Tools that are Rust functions.
//!
//! A function becomes a tool through [`NativeTool`], which is implemented for every suitable combination of arguments and
//! return type. The type parameter `M` only distinguishes these implementations; users never write it.

use std::{future::Future, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture};
use redial_proto::{ErrorClass, Failure, FieldError, limits};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::{
    context::Context,
    error::ToolError,
    handler::{Handler, ToolResult},
};

/// An async function that can be a tool: `async fn(Arguments) -> Output` or `async fn(Context, Arguments) -> Output`.
/// Do not implement it; implement [`crate::Handler`] for other tools.
pub trait NativeTool<M>: Send + Sync + 'static {
    /// The type of the arguments: `Deserialize` to read them, `JsonSchema` for the tool's schema.
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;

    /// Runs one attempt.
    fn call(&self, context: Context, arguments: Self::Arguments) -> impl Future<Output = ToolResult> + Send;
}

/// What a tool's function may return: a serialisable value, or a `Result` of one with [`ToolError`].
pub trait IntoToolResult<M> {
    /// The value as JSON text, or the failure.
    fn into_result(self) -> ToolResult;
}

/// Tells a plain return value from a `Result`.
#[derive(Debug)]
pub struct Plain;

/// Tells a `Result` from a plain return value.
#[derive(Debug)]
pub struct Fallible;

impl<T: Serialize> IntoToolResult<Plain> for T {
    fn into_result(self) -> ToolResult {
        serde_json::value::to_raw_value(&self).map_err(|error| {
            Failure::new(ErrorClass::OutputInvalid, format!("the tool's output cannot be written as JSON: {error}"))
        })
    }
}

impl<T: Serialize> IntoToolResult<Fallible> for Result<T, ToolError> {
    fn into_result(self) -> ToolResult {
        self?.into_result()
    }
}

impl<F, Fut, A, R, M> NativeTool<(A, R, M)> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: IntoToolResult<M>,
{
    type Arguments = A;

    async fn call(&self, _context: Context, arguments: A) -> ToolResult {
        self(arguments).await.into_result()
    }
}

impl<F, Fut, A, R, M> NativeTool<(Context, A, R, M)> for F
where
    F: Fn(Context, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    R: IntoToolResult<M>,
{
    type Arguments = A;

    async fn call(&self, context: Context, arguments: A) -> ToolResult {
        self(context, arguments).await.into_result()
    }
}

/// Returns the JSON Schema (draft 2020-12) of a function's arguments.
pub(crate) fn schema_of<M, T: NativeTool<M>>(_function: &T) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    settings.into_generator().into_root_schema_for::<T::Arguments>().to_value()
}

/// Makes the handler that runs a function.
pub(crate) fn handler<M: 'static, T: NativeTool<M>>(function: T) -> impl Handler {
    let function = Arc::new(function);
    FnHandler(move |context: Context, arguments: Box<RawValue>| {
        let function = Arc::clone(&function);
        async move {
            let arguments = read(&arguments)?;
            function.call(context, arguments).await
        }
        .boxed()
    })
}

struct FnHandler<F>(F);

impl<F: Fn(Context, Box<RawValue>) -> BoxFuture<'static, ToolResult> + Send + Sync + 'static> Handler for FnHandler<F> {
    fn run(&self, context: Context, arguments: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        self.0(context, arguments)
    }
}

fn read<A: DeserializeOwned>(arguments: &RawValue) -> Result<A, Failure> {
    serde_json::from_str(arguments.get()).or_else(|_| located(arguments.get()))
}

/// Reads the arguments again, slower, to find the one that does not fit the type.
fn located<A: DeserializeOwned>(text: &str) -> Result<A, Failure> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = pointer(error.path());
        let whole: Value = serde_json::from_str(text).unwrap_or(Value::Null);
        let sent = whole.pointer(&path).cloned();
        let allowed = without_position(&error.inner().to_string());
        let message = limits::shorten(&format!("{path}: {allowed}"), limits::MAX_ERROR_MESSAGE);
        let field_error = FieldError { path, rule: "deserialize".to_owned(), sent, allowed, hint: None };
        Failure::new(ErrorClass::InvalidArguments, message).without_effect().with_details(vec![field_error])
    })
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter().fold(String::new(), |start, segment| match segment {
        Segment::Seq { index } => format!("{start}/{index}"),
        Segment::Map { key } => format!("{start}/{}", key.replace('~', "~0").replace('/', "~1")),
        Segment::Enum { .. } | Segment::Unknown => start,
    })
}

/// Removes line and column from the message, because the sender gets a pointer.
fn without_position(message: &str) -> String {
    message.rfind(" at line ").map_or(message, |end| &message[..end]).to_owned()
}
