//! The dates in the scenarios, in UTC like those of the tools and scripts.

use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};

/// Computed once, when the demo starts.
#[derive(Clone, Debug)]
pub(crate) struct Dates {
    pub(crate) today: NaiveDate,
    /// In 30 days: a date that can be booked.
    pub(crate) later: NaiveDate,
    /// [`Dates::later`] as a user writes it, which the airline does not accept: `12月20日`.
    pub(crate) spoken: String,
}

impl Dates {
    pub(crate) fn at(now: DateTime<Utc>) -> Self {
        let today = now.date_naive();
        let later = today.checked_add_days(Days::new(30)).unwrap_or(NaiveDate::MAX);
        Self { today, later, spoken: format!("{}月{}日", later.month(), later.day()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_has_a_machine_form_and_a_spoken_form() {
        let dates = Dates::at("2026-11-20T16:30:00Z".parse().unwrap());
        assert_eq!((dates.today.to_string(), dates.later.to_string()), ("2026-11-20".into(), "2026-12-20".into()));
        assert_eq!(dates.spoken, "12月20日");
    }
}
