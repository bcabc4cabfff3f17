//! The days that the scenes speak of, in UTC, as the tools and scripts count them.

use chrono::{DateTime, Datelike, Days, NaiveDate, Utc};

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Dates {
    pub(crate) today: NaiveDate,
    /// Today in 30 days: one can still book.
    pub(crate) later: NaiveDate,
    /// The same as people write it, which no program takes: `12月20日`.
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
    fn a_day_has_two_forms() {
        let dates = Dates::at("2026-11-20T16:30:00Z".parse().unwrap());
        assert_eq!((dates.today.to_string(), dates.later.to_string()), ("2026-11-20".into(), "2026-12-20".into()));
        assert_eq!(dates.spoken, "12月20日");
    }
}
