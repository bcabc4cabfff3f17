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

use crate::ledger::Ledger;

const CITIES: [&str; 5] = ["北京", "上海", "广州", "深圳", "成都"];
const SEATS: std::ops::RangeInclusive<i64> = 1..=5;
/// How long the airline takes to answer.
const LATENCY: Duration = Duration::from_millis(100);

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
pub(crate) fn tool(airline: Ledger) -> Tool {
    let book = move |context: Context, flight: Flight| {
        let airline = airline.clone();
        async move { book(&airline, &context, flight).await }
    };
    Tool::new("book_flight", book)
        .describe("预订北京、上海、广州、深圳、成都之间的机票，返回预订编号。")
        .effect(ToolEffect::Keyed)
        .timeout(Duration::from_secs(10))
}

async fn book(airline: &Ledger, context: &Context, flight: Flight) -> Result<Booking, ToolError> {
    check(&flight, Utc::now().date_naive())?;
    tokio::time::sleep(LATENCY).await;
    let booked = airline.append(&context.idempotency_key, json!(flight)).await;
    booked.map_err(|error| ToolError::unavailable(format!("the airline does not answer: {error}")))?;
    Ok(Booking { booking: booking_number(&context.idempotency_key), flight })
}

/// Derives six letters from the key with FNV-1a: requests with the same key are the same booking.
fn booking_number(key: &str) -> String {
    let hash = key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (0..6).map(|digit| char::from(b'A' + u8::try_from(hash / 26_u64.pow(digit) % 26).unwrap_or(0))).collect()
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
