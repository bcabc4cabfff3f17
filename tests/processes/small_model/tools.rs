//! Simple tools, which remember what they were asked.

use std::sync::{Arc, Mutex};

use redial_proto::{CallId, ToolEffect};
use redial_worker::{Context, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One run of a tool.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) call: CallId,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
}

/// Every run, in order.
#[derive(Clone, Default)]
pub(crate) struct Runs(Arc<Mutex<Vec<Run>>>);

impl Runs {
    pub(crate) fn all(&self) -> Vec<Run> {
        self.0.lock().unwrap().clone()
    }

    fn add(&self, context: Context, arguments: &impl Serialize) {
        let arguments = serde_json::to_value(arguments).unwrap();
        self.0.lock().unwrap().push(Run { call: context.call, tool: context.tool, arguments });
    }
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Numbers {
    a: f64,
    b: f64,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Place {
    /// The name of a city in English.
    city: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Table {
    #[schemars(range(min = 1, max = 8))]
    people: u8,
    /// As HH:MM.
    #[schemars(regex(pattern = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    time: String,
}

fn weather(place: &Place) -> Result<Value, ToolError> {
    match place.city.to_lowercase().as_str() {
        "london" => Ok(json!({"degrees": 12})),
        "paris" => Ok(json!({"degrees": 16})),
        "rome" => Ok(json!({"degrees": 24})),
        "oslo" => Ok(json!({"degrees": 3})),
        _ => Err(ToolError::invalid("/city", "served", &place.city, "London, Oslo, Paris or Rome")),
    }
}

/// `add`, `get_weather` and `reserve_table`.
pub(crate) fn tools(runs: &Runs) -> Vec<Tool> {
    let [adds, weathers, reserves] = [(); 3].map(|()| runs.clone());
    let add = move |context: Context, numbers: Numbers| {
        adds.add(context, &numbers);
        async move { json!({"sum": numbers.a + numbers.b}) }
    };
    let get_weather = move |context: Context, place: Place| {
        weathers.add(context, &place);
        async move { weather(&place) }
    };
    let reserve_table = move |context: Context, table: Table| {
        reserves.add(context, &table);
        async move { json!({"table": 1 + table.people / 2}) }
    };
    vec![
        Tool::new("add", add).describe("Adds two numbers.").effect(ToolEffect::Read),
        Tool::new("get_weather", get_weather).describe("The weather in a city.").effect(ToolEffect::Read),
        Tool::new("reserve_table", reserve_table)
            .describe("Reserves a table in the restaurant.")
            .effect(ToolEffect::Idempotent),
    ]
}
