//! The tool `book_flight`. What the schema can say is refused before anything runs; the rest is checked here, and
//! whoever called gets to know which argument was wrong, and what would be right.

use std::time::Duration;

use chrono::{NaiveDate, Utc};
use redial_worker::{Context, Effect, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{POOL, airline::Airline};

/// The cities of the airline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
enum City {
    #[serde(rename = "北京")]
    Beijing,
    #[serde(rename = "上海")]
    Shanghai,
    #[serde(rename = "广州")]
    Guangzhou,
    #[serde(rename = "深圳")]
    Shenzhen,
    #[serde(rename = "成都")]
    Chengdu,
}

/// A flight to book.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Flight {
    /// Where it starts.
    origin: City,
    /// Where it goes; another city.
    destination: City,
    /// The day, YYYY-MM-DD; tomorrow or later.
    date: NaiveDate,
    /// Seats.
    #[schemars(range(min = 1, max = 5))]
    passengers: u8,
}

#[derive(Debug, Serialize)]
struct Booking {
    booking: String,
    #[serde(flatten)]
    flight: Flight,
}

/// Keyed: the airline gets the same key with every attempt, so that a second attempt is no second booking.
pub(crate) fn tool(airline: Airline) -> Tool {
    let book = move |context: Context, flight: Flight| {
        let airline = airline.clone();
        async move { book(&airline, &context, flight).await }
    };
    Tool::new("book_flight", book)
        .describe("Books a flight between 北京, 上海, 广州, 深圳 and 成都.")
        .effect(Effect::Keyed)
        .pool(POOL)
        .timeout(Duration::from_secs(10))
}

async fn book(airline: &Airline, context: &Context, flight: Flight) -> Result<Booking, ToolError> {
    check(&flight, Utc::now().date_naive())?;
    let request = serde_json::json!(flight);
    let booked = airline.book(&context.idempotency_key, request).await;
    let booking = booked.map_err(|error| ToolError::unavailable(format!("the airline does not answer: {error}")))?;
    Ok(Booking { booking, flight })
}

/// All rules that the schema cannot say; every broken one is named.
fn check(flight: &Flight, today: NaiveDate) -> Result<(), ToolError> {
    let mut wrong: Option<ToolError> = None;
    let mut add = |path, rule, sent: serde_json::Value, allowed: &str| {
        wrong = Some(match wrong.take() {
            None => ToolError::invalid(path, rule, sent, allowed),
            Some(error) => error.and_invalid(path, rule, sent, allowed),
        });
    };
    if flight.origin == flight.destination {
        add("/destination", "not_origin", serde_json::json!(flight.destination), "another city than the origin");
    }
    if flight.date <= today {
        add("/date", "future", serde_json::json!(flight.date), &format!("a day after {today}"));
    }
    wrong.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(text: &str) -> Flight {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_broken_rule_is_named_at_once() {
        let today = "2026-11-20".parse().unwrap();
        let wrong = flight(r#"{"origin":"成都","destination":"成都","date":"2026-11-20","passengers":1}"#);
        let error = check(&wrong, today).unwrap_err().to_string();
        assert!(error.contains(r#"/destination: "成都" was sent; allowed: another city"#), "{error}");
        assert!(error.contains(r#"/date: "2026-11-20" was sent; allowed: a day after 2026-11-20"#), "{error}");

        let right = flight(r#"{"origin":"成都","destination":"北京","date":"2026-11-21","passengers":5}"#);
        assert_eq!(check(&right, today), Ok(()));
    }

    #[test]
    fn the_schema_names_cities_and_seats() {
        let spec = tool(Airline::new("nowhere".into(), "test")).spec;
        let schema = spec.parameters.to_string();
        assert!(schema.contains(r#"["北京","上海","广州","深圳","成都"]"#), "{schema}");
        assert_eq!(spec.parameters.pointer("/properties/passengers/maximum"), Some(&serde_json::json!(5)));
        assert_eq!(spec.parameters.pointer("/properties/date/format"), Some(&serde_json::json!("date")));
        assert_eq!(spec.check(), Ok(()));
    }
}
