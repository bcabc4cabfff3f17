//! How a search tells how far it came, and where the next page begins.

use super::*;

const LAST: CallId = CallId(uuid::Uuid::from_u128(0x0193_6b1c_0000_7000_8000_0000_0000_0001));

fn far(stop: Stop, matches: Option<usize>) -> HowFar {
    let at = "2026-11-20T08:00:00.250Z".parse().unwrap();
    HowFar { stop, looked: 99_999_999, matches, last: Some((LAST, at)), more: More { all: false, limited: false } }
}

#[test]
fn a_search_tells_in_80_columns_how_far_it_came() {
    let mut told = Vec::new();
    for stop in [Stop::Limit, Stop::Looked, Stop::Ended, Stop::Interrupted] {
        for matches in [None, Some(99_999)] {
            for more in [More { all: false, limited: true }, More { all: true, limited: false }] {
                told.push(how_far(&HowFar { more, ..far(stop, matches) }));
            }
        }
    }
    let widest = told.iter().flat_map(|text| text.lines()).map(str::len).max();
    assert!(widest.is_some_and(|widest| widest <= 80), "{told:#?}");
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn what_goes_on_is_not_what_is_set_already() {
    let more = |all, limited, stop| More { all, limited }.after(LAST, stop);
    assert_eq!(more(false, false, Stop::Limit), format!("--before {LAST}, or --all"));
    assert_eq!(more(false, true, Stop::Limit), format!("--before {LAST}, or raise --limit"));
    assert_eq!(more(true, true, Stop::Limit), format!("--before {LAST}, or raise --limit"));
    assert_eq!(more(true, false, Stop::Interrupted), format!("--before {LAST}"));
    assert_eq!(more(false, true, Stop::Looked), format!("--before {LAST}, or --all"));
}

#[test]
fn a_page_that_pruning_emptied_is_not_the_last() {
    let mut position = Position { filter: Filter::default(), ended: false };
    position.advance(&Found { looked: vec![LAST], last: Some(LAST), ended: false, ..Found::default() });
    assert_eq!((position.ended, position.filter.before), (false, Some(LAST)));
    position.advance(&Found { ended: true, ..Found::default() });
    assert_eq!((position.ended, position.filter.before), (true, Some(LAST)));
}
