//! The tool `get_weather`: an old service with a rule that nobody wrote down. A model learns it from the error.

use redial_worker::{Effect, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::POOL;

/// Whose weather to get.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Place {
    /// A city
    location: String,
}

#[derive(Debug, PartialEq, Serialize)]
struct Weather {
    location: String,
    sky: &'static str,
    celsius: i8,
}

pub(crate) fn tool() -> Tool {
    Tool::new("get_weather", get).describe("The weather of a city, now.").effect(Effect::Read).pool(POOL)
}

/// What the service says is handed on word by word: only it knows what it wants.
async fn get(place: Place) -> Result<Weather, ToolError> {
    if place.location.chars().any(char::is_lowercase) {
        return Err(ToolError::business_rule("Input queries must be all capitals"));
    }
    Ok(Weather { location: place.location, sky: "fog", celsius: 14 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_capitals_are_understood() {
        let weather = async |location: &str| get(Place { location: location.to_owned() }).await;
        let refused = weather("San Francisco").await.unwrap_err();
        assert_eq!(refused.to_string(), "business_rule: Input queries must be all capitals");
        assert_eq!(weather("SAN FRANCISCO").await.unwrap().celsius, 14);
    }
}
