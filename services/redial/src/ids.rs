//! Ids of calls and tasks as users write them: whole, or as the first characters, if those are of one id only.

use std::{collections::HashMap, str::FromStr};

use chrono::{DateTime, Utc};
use redial_proto::{ApiError, CallId, Code, TaskId};
use redial_store::{Store, StoreError, audit::Named};
use uuid::Uuid;

use crate::{connect, output, settings::Settings};

/// Digits of an id, without its hyphens.
const DIGITS: usize = 32;
/// The digits of an id that say when it was made, to the millisecond.
const TIME: usize = 12;
/// Where an id has hyphens.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// Ids that an ambiguous prefix lists.
const LISTED: u32 = 10;
/// Characters of a name in that list.
const NAME: usize = 10;
const ALLOWED: &str = "allowed: an id such as 01a20236-ac46-7781-a3d0-49c0fb4d6170, or how it begins";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdText {
    Whole(Uuid),
    /// The first digits of an id, and the smallest and the greatest id that begin with them.
    Prefix {
        text: String,
        first: Uuid,
        last: Uuid,
    },
}

impl FromStr for IdText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Whole(id));
        }
        let no_id = || Err(format!("this is no id\n{ALLOWED}"));
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let hyphens: Vec<usize> = text.match_indices('-').map(|(at, _)| at).collect();
        if digits.is_empty() || digits.len() >= DIGITS || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return no_id();
        }
        if !hyphens.is_empty() && !HYPHENS.starts_with(&hyphens) {
            return no_id();
        }
        let bound = |fill: &str| Uuid::parse_str(&(digits.clone() + &fill.repeat(DIGITS - digits.len())));
        match (bound("0"), bound("f")) {
            (Ok(first), Ok(last)) => Ok(Self::Prefix { text: text.to_owned(), first, last }),
            _ => no_id(),
        }
    }
}

/// What an id must be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Any,
    Call,
    Task,
}

impl Of {
    const fn name(self) -> &'static str {
        match self {
            Self::Any => "task or call",
            Self::Call => "call",
            Self::Task => "task",
        }
    }

    const fn fits(self, named: &Named) -> bool {
        match self {
            Self::Any => true,
            Self::Call => !named.is_task,
            Self::Task => named.is_task,
        }
    }
}

/// Returns the whole id. A prefix is looked up, so a command that otherwise needs no database needs it for that.
pub(crate) async fn resolve(settings: &Settings, id: &IdText, of: Of) -> anyhow::Result<Uuid> {
    let text = match id {
        IdText::Whole(id) => return Ok(*id),
        IdText::Prefix { text, .. } => text,
    };
    if settings.database_url_if_set().is_none() {
        let message =
            format!("{text} is the beginning of an id\nno database_url is set to look it up; allowed then: a whole id");
        return Err(ApiError::new(Code::InvalidValue, message).into());
    }
    in_store(&connect::store(settings).await?, id, of).await
}

/// Returns the whole id, looked up in a store that is open already.
pub(crate) async fn in_store(store: &Store, id: &IdText, of: Of) -> anyhow::Result<Uuid> {
    let (text, first, last) = match id {
        IdText::Whole(id) => return Ok(*id),
        IdText::Prefix { text, first, last } => (text, *first, *last),
    };
    let found = store.ids_between(first, last, LISTED + 1).await?;
    let (fitting, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|named| of.fits(named));
    match (fitting.as_slice(), others.as_slice()) {
        ([one], _) => Ok(one.id),
        ([], []) => Err(none_begins_with(text, of).into()),
        ([], [other]) => Err(wrong_kind(other, of).into()),
        ([], [other, ..]) => Err(only_others(text, other, of).into()),
        (several, _) => Err(ambiguous(text, several, store.now().await?).into()),
    }
}

pub(crate) async fn call(store: &Store, id: Option<&IdText>) -> anyhow::Result<Option<CallId>> {
    let Some(id) = id else { return Ok(None) };
    in_store(store, id, Of::Call).await.map(|id| Some(CallId(id)))
}

pub(crate) async fn task(store: &Store, id: Option<&IdText>) -> anyhow::Result<Option<TaskId>> {
    let Some(id) = id else { return Ok(None) };
    in_store(store, id, Of::Task).await.map(|id| Some(TaskId(id)))
}

// The errors have no line of more than 80 columns, with the word and the code that stand around them.

fn none_begins_with(text: &str, of: Of) -> ApiError {
    let code = if of == Of::Task { Code::TaskNotFound } else { Code::CallNotFound };
    ApiError::new(code, format!("no {} on record begins with {text}\n{}", of.name(), connect::FIND))
}

/// Refuses a text that stands for one id, of the other kind.
fn wrong_kind(other: &Named, of: Of) -> ApiError {
    ApiError::new(Code::InvalidValue, format!("{} is a {}\nallowed: a {}", other.id, kind(other), of.name()))
}

/// Refuses an id that was given whole and is a call's.
pub(crate) fn is_a_call(id: Uuid) -> ApiError {
    ApiError::new(Code::InvalidValue, format!("{id} is a call\nallowed: a task; see redial show"))
}

fn only_others(text: &str, other: &Named, of: Of) -> ApiError {
    let message = format!(
        "the ids of several {}s begin with {text}\nand that of no {}; allowed: the id of a {}",
        kind(other),
        of.name(),
        of.name()
    );
    ApiError::new(Code::InvalidValue, message)
}

fn ambiguous(text: &str, several: &[Named], now: DateTime<Utc>) -> ApiError {
    let line = |named: &Named| {
        let name = output::one_line(named.name.as_deref().unwrap_or_default(), NAME);
        format!("\n  {}  {} {name}, {}, {}", named.id, kind(named), named.state, output::ago(named.submitted_at, now))
    };
    let listed: String = several.iter().take(LISTED as usize).map(line).collect();
    let more = if several.len() > LISTED as usize { "\n  and more" } else { "" };
    let allowed = "allowed: as many characters as only one of them begins with";
    ApiError::new(Code::InvalidValue, format!("several ids begin with {text}{listed}{more}\n{allowed}"))
}

const fn kind(named: &Named) -> &'static str {
    if named.is_task { Of::Task.name() } else { Of::Call.name() }
}

/// Ids as short as they can be while no other call or task on record begins like them. All digits that say when an id was
/// made are kept, so that what is submitted later does not begin like it, either.
pub(crate) struct Short(HashMap<Uuid, usize>);

impl Short {
    pub(crate) async fn of(store: &Store, ids: &[Uuid]) -> Result<Self, StoreError> {
        Ok(Self(store.unique_digits(ids).await?.into_iter().collect()))
    }

    /// Shows every id as a whole.
    pub(crate) fn whole() -> Self {
        Self(HashMap::new())
    }

    pub(crate) fn text(&self, id: Uuid) -> String {
        let mut text = id.to_string();
        if let Some(digits) = self.0.get(&id) {
            let digits = (*digits).max(TIME);
            let hyphens = HYPHENS.iter().enumerate().filter(|(before, at)| *at - before < digits).count();
            text.truncate(digits + hyphens);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01936b1c-0000-7000-8000-000000000001";

    #[test]
    fn an_id_is_given_whole_or_by_its_first_characters() {
        let id: Uuid = ID.parse().unwrap();
        for whole in [ID.to_owned(), ID.to_uppercase(), ID.replace('-', "")] {
            assert_eq!(whole.parse(), Ok(IdText::Whole(id)), "{whole}");
        }
        for length in 1..ID.len() {
            let IdText::Prefix { text, first, last } = ID[..length].parse().unwrap() else { panic!("{length}") };
            assert!(text == ID[..length] && first <= id && id <= last, "{text}: {first} to {last}");
        }
        let Ok(IdText::Prefix { first, last, .. }) = "01936b1c-0000-7".parse() else { panic!("a prefix") };
        assert_eq!(first.to_string(), "01936b1c-0000-7000-0000-000000000000");
        assert_eq!(last.to_string(), "01936b1c-0000-7fff-ffff-ffffffffffff");
    }

    #[test]
    fn text_that_is_no_id_is_told_so() {
        for text in
            ["", "-", "xyz", "0193-6b1c", "01936b1c_0000", "订", &format!("{ID}0"), "01936b1c--0000", "0193 6b1c"]
        {
            let error = text.parse::<IdText>().unwrap_err();
            assert!(error.starts_with("this is no id\nallowed: "), "{text}: {error}");
        }
    }

    #[test]
    fn errors_are_true_of_every_prefix_and_fit_80_columns() {
        let now = "2026-11-20T09:59:00Z".parse().unwrap();
        let named = |is_task, state: &str| Named {
            id: ID.parse().unwrap(),
            is_task,
            name: Some("a_tool_whose_name_is_long".to_owned()),
            state: state.to_owned(),
            submitted_at: "2026-11-20T08:00:30Z".parse().unwrap(),
        };
        let several: Vec<Named> = (0..=LISTED).map(|_| named(false, "retry_wait")).collect();
        let longest = &ID[..ID.len() - 1];
        let errors = [
            ambiguous("0", &several, now),
            ambiguous(longest, &several[..2], now),
            only_others("0", &several[0], Of::Task),
            only_others(longest, &several[0], Of::Task),
            wrong_kind(&named(true, "succeeded"), Of::Call),
            none_begins_with(longest, Of::Any),
            none_begins_with(longest, Of::Task),
        ];
        let texts = errors.map(|error| format!("error: {} [{}]", error.message, error.code));
        let widest = texts.iter().flat_map(|text| text.lines()).map(unicode_width::UnicodeWidthStr::width).max();
        assert!(widest.is_some_and(|widest| widest <= 80), "{widest:?}: {texts:#?}");
        insta::assert_snapshot!(texts.join("\n\n"));
    }

    #[test]
    fn a_short_id_has_what_makes_it_unique_and_its_time() {
        let id: Uuid = ID.parse().unwrap();
        let short = |digits| Short(HashMap::from([(id, digits)])).text(id);
        assert_eq!(short(1), "01936b1c-0000");
        assert_eq!(short(12), "01936b1c-0000");
        assert_eq!(short(13), "01936b1c-0000-7");
        assert_eq!(short(16), "01936b1c-0000-7000");
        assert_eq!(short(17), "01936b1c-0000-7000-8");
        assert_eq!(short(24), "01936b1c-0000-7000-8000-0000");
        assert_eq!(short(32), ID);
        assert_eq!(Short::whole().text(id), ID);
        for digits in 1..=DIGITS {
            assert!(short(digits).parse::<IdText>().is_ok(), "{digits}");
        }
    }
}
