//! The tool `book_flight`, which checks all rules of its arguments itself.
//!
//! Redial checks the schema before it runs a tool. A model that breaks the schema learns only about the schema's rules
//! first, and about the tool's own rules ("not in the past") after it has corrected those. To need one correction
//! instead of two, put only the types into the schema, describe the rules in words, and check them in the tool.

use std::time::Duration;

use chrono::{NaiveDate, Utc};
use redial_worker::{Context, Rules, Tool, ToolEffect, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::airline::Airline;

const CITIES: [&str; 5] = ["北京", "上海", "广州", "深圳", "成都"];
const SEATS: std::ops::RangeInclusive<i64> = 1..=5;

/// 要预订的航班
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Flight {
    /// 出发城市：北京、上海、广州、深圳、成都之一
    origin: String,
    /// 到达城市：北京、上海、广州、深圳、成都之一，不能与出发城市相同
    destination: String,
    /// 出发日期，格式为 YYYY-MM-DD，最早为明天
    date: String,
    /// 乘客人数，1 到 5
    passengers: i64,
}

#[derive(Debug, Serialize)]
struct Booking {
    booking: String,
    #[serde(flatten)]
    flight: Flight,
}

/// Keyed: every attempt sends the same key to the airline, so a second attempt is not a second booking.
pub(crate) fn tool(airline: Airline) -> Tool {
    let book = move |context: Context, flight: Flight| {
        let airline = airline.clone();
        async move { book(&airline, &context, flight).await }
    };
    Tool::new("book_flight", book)
        .describe("预订北京、上海、广州、深圳、成都之间的机票，返回预订编号。")
        .effect(ToolEffect::Keyed)
        .timeout(Duration::from_secs(10))
}

async fn book(airline: &Airline, context: &Context, flight: Flight) -> Result<Booking, ToolError> {
    check(&flight, Utc::now().date_naive())?;
    let booked = airline.book(&context.idempotency_key, json!(flight)).await;
    let booking = booked.map_err(|error| ToolError::unavailable(format!("the airline does not answer: {error}")))?;
    Ok(Booking { booking, flight })
}

/// Checks every rule, in the order of the arguments.
fn check(flight: &Flight, today: NaiveDate) -> Result<(), ToolError> {
    let mut rules = Rules::default();
    let known = |city: &str| CITIES.contains(&city);
    if !known(&flight.origin) {
        rules.broken("/origin", "city", &flight.origin, &CITIES.join("、"));
    }
    if !known(&flight.destination) {
        rules.broken("/destination", "city", &flight.destination, &CITIES.join("、"));
    } else if flight.destination == flight.origin {
        rules.broken("/destination", "not_origin", &flight.destination, "与出发城市不同的城市");
    }
    match flight.date.parse::<NaiveDate>() {
        Ok(date) if date > today => {}
        Ok(_) => rules.broken("/date", "future", &flight.date, &format!("{today} 之后的日期，格式为 YYYY-MM-DD")),
        Err(_) => rules.broken("/date", "format", &flight.date, &format!("YYYY-MM-DD，{today} 之后的日期")),
    }
    if !SEATS.contains(&flight.passengers) {
        rules.broken("/passengers", "range", flight.passengers, "1 到 5 的整数");
    }
    rules.into_result()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ledger;

    fn check_json(text: &str) -> Result<(), ToolError> {
        check(&serde_json::from_str(text).unwrap(), "2026-11-20".parse().unwrap())
    }

    #[test]
    fn one_error_names_every_broken_rule() {
        let error =
            check_json(r#"{"origin": "洛杉矶", "destination": "上海", "date": "明天", "passengers": 6}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid_arguments: /origin: \"洛杉矶\" was sent; allowed: 北京、上海、广州、深圳、成都; \
             /date: \"明天\" was sent; allowed: YYYY-MM-DD，2026-11-20 之后的日期; \
             /passengers: 6 was sent; allowed: 1 到 5 的整数"
        );
        let error = check_json(r#"{"origin": "成都", "destination": "成都", "date": "2026-11-20", "passengers": 0}"#);
        assert_eq!(
            error.unwrap_err().to_string(),
            "invalid_arguments: /destination: \"成都\" was sent; allowed: 与出发城市不同的城市; \
             /date: \"2026-11-20\" was sent; allowed: 2026-11-20 之后的日期，格式为 YYYY-MM-DD; \
             /passengers: 0 was sent; allowed: 1 到 5 的整数"
        );
        let right = r#"{"origin": "成都", "destination": "北京", "date": "2026-11-21", "passengers": 5}"#;
        assert_eq!(check_json(right), Ok(()));
    }

    #[test]
    fn the_schema_contains_only_types_and_describes_the_rules() {
        let spec = tool(Airline::new(Ledger::new("unused".into(), "test"))).spec;
        let property = |name: &str| spec.parameters["properties"][name].clone();
        assert_eq!(property("date")["type"], "string");
        assert!(property("date").get("format").is_none());
        assert!(property("origin")["description"].as_str().unwrap().contains("北京、上海、广州、深圳、成都"));
        assert_eq!((&property("passengers")["type"], property("passengers").get("maximum")), (&json!("integer"), None));
        assert_eq!(spec.check(), Ok(()));
    }
}
