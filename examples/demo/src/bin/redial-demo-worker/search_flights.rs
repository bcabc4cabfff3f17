//! The tool `search_flights`: keys in snake case, as its type has them. Models that write camel case are understood.

use chrono::NaiveDate;
use redial_worker::{Effect, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::POOL;

/// What to look for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// Where the flight starts
    departure_city: String,
    /// Where it goes
    arrival_city: String,
    /// The day, YYYY-MM-DD
    departure_date: NaiveDate,
}

#[derive(Debug, Serialize)]
struct Found {
    departure_city: String,
    arrival_city: String,
    departure_date: NaiveDate,
    flights: [Flight; 2],
}

#[derive(Debug, Serialize)]
struct Flight {
    number: &'static str,
    departs: &'static str,
    price_cny: u32,
}

pub(crate) fn tool() -> Tool {
    Tool::new("search_flights", search)
        .describe("The flights between two cities on a day.")
        .effect(Effect::Read)
        .pool(POOL)
}

async fn search(Search { departure_city, arrival_city, departure_date }: Search) -> Found {
    let early = Flight { number: "RD 101", departs: "07:30", price_cny: 780 };
    let late = Flight { number: "RD 207", departs: "18:05", price_cny: 1120 };
    Found { departure_city, arrival_city, departure_date, flights: [early, late] }
}
