//! `redial forget`: it counts, asks, erases, and lists what it erased.

use super::fixture::Fixture;

#[tokio::test]
async fn a_conversation_is_counted_erased_and_listed() {
    let fixture = Fixture::start(&[("book", "keyed")]).await;
    let book = fixture.ended("book", &[r#"{"to": "SHA"}"#, "--key", "order-17", "--conversation", "trip-9"]).await;
    let other = fixture.ended("book", &["--conversation", "trip-10"]).await;

    let counted = fixture.out(&["forget", "--conversation", "trip-9", "--dry-run"]).await;
    assert_eq!(counted, "conversation trip-9 of tenant default: 1 call, 1 attempt, 1 key would be erased\n");
    let asked = fixture.run(&["forget", "--conversation", "trip-9"]).await;
    assert!(asked.code == 2 && asked.err.contains("nothing was erased: add --yes"), "{asked:?}");
    assert_eq!(fixture.calls(&[]).await, [other.as_str(), book.as_str()]);
    let unnamed = fixture.run(&["forget", "--yes"]).await;
    assert_eq!(unnamed.code, 2, "{unnamed:?}");
    let nothing = fixture.run(&["forget", "--conversation", "trip-9", "--tenant", "acme", "--yes"]).await;
    assert_eq!(
        (nothing.code, nothing.err.as_str()),
        (0, "nothing of conversation trip-9 of tenant acme is on record\n")
    );

    let erased = fixture.json(&["forget", "--conversation", "trip-9", "--yes"]).await;
    assert_eq!((&erased[0]["counts"]["calls"], &erased[0]["counts"]["keys"]), (&1.into(), &1.into()), "{erased:?}");
    assert_eq!(fixture.calls(&[]).await, [other]);
    let shown = fixture.run(&["show", &book]).await;
    assert!(shown.code == 1 && shown.err.contains("may have been erased: redial forget --list"), "{shown:?}");
    let listed = fixture.json(&["forget", "--list"]).await;
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["conversation"], &listed[0]["erasure"]), (&"trip-9".into(), &erased[0]["erasure"]));
    assert!(listed[0]["erased_at"].is_string() && listed[0]["submitted_from"].is_string(), "{listed:?}");
    let wide = fixture.out(&["forget", "--list", "--wide"]).await;
    let id = listed[0]["erasure"].as_str().unwrap();
    assert!(wide.lines().count() == 2 && wide.contains(id) && wide.contains("late reports"), "{wide}");
    let again = fixture.ended("book", &[r#"{"to": "PEK"}"#, "--key", "order-17"]).await;
    assert_ne!(again, book, "the key is free");

    fixture.out(&["forget", "--conversation", "trip-10", "--yes"]).await;
    let newest = fixture.run(&["forget", "--list", "--limit", "1", "--json"]).await;
    assert!(newest.out.lines().count() == 1 && newest.out.contains(r#""conversation":"trip-10""#), "{newest:?}");
    assert!(newest.out.contains(r#""user":"#) && newest.err.contains("a larger --limit"), "{newest:?}");
    assert_eq!(fixture.run(&["forget", "--conversation", "trip-10", "--limit", "1", "--dry-run"]).await.code, 2);
}
