//! Filters that live in the address: the parameters of a page are those of the request that it is made of.

use chrono::{NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, Utc};

use crate::{page, show};

/// The parameters of an address, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pairs: Vec<(String, String)>,
}

/// One condition that is set, and the address without it.
#[derive(Debug)]
pub(crate) struct Chip {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) without: String,
}

/// Parameters that are about the page, and no condition.
const OWN: [&str; 5] = ["page_token", "page_size", "done", "look_ms", "from"];

impl Filter {
    /// Reads the filter of an address. What is empty is no condition: forms send all their fields. A short time is one
    /// from here on: the next page of a list and an order mean the same calls.
    pub(crate) fn of(here: &str) -> Self {
        let query = here.split_once('?').map(|(_, query)| query).unwrap_or_default();
        let pairs: Vec<(String, String)> = serde_html_form::from_str(query).unwrap_or_default();
        let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        Self { pairs: given.map(|(name, value)| (name.clone(), fixed(&name, value))).collect() }
    }

    /// Returns the value of a parameter, or nothing.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.pairs.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn is(&self, name: &str, value: &str) -> bool {
        self.pairs.iter().any(|(found, has)| found == name && has == value)
    }

    /// Says whether a parameter is about the page, and no condition.
    pub(crate) fn is_own(name: &str) -> bool {
        OWN.contains(&name)
    }

    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.conditions().next().is_none()
    }

    fn conditions(&self) -> impl Iterator<Item = &(String, String)> {
        self.pairs.iter().filter(|(name, _)| !OWN.contains(&name.as_str()))
    }

    /// Returns the same with other values of a parameter; an empty value removes it. The place in the list is given up.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut pairs = self.pairs.clone();
        pairs.retain(|(found, _)| found != name && found != "page_token" && found != "done");
        if !value.is_empty() {
            pairs.push((name.to_owned(), value.to_owned()));
        }
        Self { pairs }
    }

    /// Returns the same at another place of the list.
    pub(crate) fn at(&self, page_token: &str) -> Self {
        let mut moved = self.with("page_token", "");
        moved.pairs.push(("page_token".to_owned(), page_token.to_owned()));
        moved
    }

    /// Returns the address of the next page of a list; `None` if there is none.
    pub(crate) fn next(&self, path: &str, page_token: &str) -> Option<String> {
        (!page_token.is_empty()).then(|| format!("{path}{}", self.at(page_token).query()))
    }

    /// Writes a query: `?a=1&b=2`, or nothing.
    pub(crate) fn query(&self) -> String {
        page::query(self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Writes the query of a request: the conditions and the place, with more parameters.
    pub(crate) fn request(&self, more: &[(&str, &str)]) -> String {
        let given = self.pairs.iter().filter(|(name, _)| name != "done" && name != "from");
        let given = given.map(|(name, value)| (name.as_str(), value.as_str()));
        let more = more.iter().copied().filter(|(name, _)| self.get(name).is_empty());
        page::query(given.chain(more))
    }

    /// Returns the conditions, each with the address without it.
    pub(crate) fn chips(&self, path: &str) -> Vec<Chip> {
        let chip = |(name, value): &(String, String)| {
            let mut pairs = self.pairs.clone();
            pairs.retain(|pair| !(pair.0 == *name && pair.1 == *value) && pair.0 != "page_token" && pair.0 != "done");
            let without = format!("{path}{}", Self { pairs }.query());
            Chip { name: show::line(&show::words(name), 60), value: show::line(value, 80), without }
        };
        self.conditions().map(chip).collect()
    }
}

/// Fixes a time as the API takes it: `2h` and `3d` are so long ago, a day begins at midnight, and what has no zone is
/// in UTC. Everything else stays, and the API says what is wrong with it.
fn fixed(name: &str, value: String) -> String {
    if name != "since" && name != "until" {
        return value;
    }
    let ago = || {
        let unit = value.chars().last()?;
        let number: i64 = value.get(..value.len() - unit.len_utf8())?.parse().ok()?;
        let minutes = match unit {
            'm' => 1,
            'h' => 60,
            'd' => 24 * 60,
            _ => return None,
        };
        Utc::now().checked_sub_signed(TimeDelta::try_minutes(number.checked_mul(minutes)?)?)
    };
    let day = || NaiveDate::parse_from_str(&value, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
    let minute = || NaiveDateTime::parse_from_str(&value, "%Y-%m-%dT%H:%M").ok();
    let at = ago().or_else(|| day().or_else(minute).map(|time| time.and_utc()));
    at.map_or(value, |at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_keeps_its_order_and_escapes_what_it_holds() {
        let filter =
            Filter::of("/console/calls?tool=a&argument=%2Fcity%3DParis&state=&not_tool=b&not_tool=c&page_token=x");
        assert_eq!(filter.query(), "?tool=a&argument=%2Fcity%3DParis&not_tool=b&not_tool=c&page_token=x");
        let more = filter.with("state", "failed").query();
        assert_eq!(more, "?tool=a&argument=%2Fcity%3DParis&not_tool=b&not_tool=c&state=failed");
        let chips = filter.chips("/console/calls");
        assert_eq!(chips.len(), 4);
        assert_eq!(chips[2].without, "/console/calls?tool=a&argument=%2Fcity%3DParis&not_tool=c");
        assert_eq!(filter.at("y").get("page_token"), "y");
    }

    #[test]
    fn times_may_be_short() {
        let request = |since: &str| Filter::of(&format!("?since={}", show::url(since))).request(&[]);
        assert_eq!(request("2026-11-25"), "?since=2026-11-25T00%3A00%3A00Z");
        assert_eq!(request("2026-11-25T15:04"), "?since=2026-11-25T15%3A04%3A00Z");
        assert!(request("2h").ends_with('Z'), "{}", request("2h"));
        let paged = Filter::of("?since=2h").at("token");
        assert!(paged.get("since").ends_with('Z'), "a token is good for one filter: {}", paged.query());
        for left in ["yesterday", "h", "99999999999999999d", "2026-11-25T15:04:05+01:00", "\u{e9}"] {
            assert_eq!(request(left), format!("?since={}", show::url(left)));
        }
    }

    #[test]
    fn what_a_value_holds_cannot_leave_its_parameter() {
        let filter = Filter::default().with("tool", "a&state=failed#\"><");
        assert_eq!(filter.query(), "?tool=a%26state%3Dfailed%23%22%3E%3C");
    }
}
