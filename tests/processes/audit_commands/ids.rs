//! Ids by their first characters.

use redial_test_stack::{Reply, until};

use super::{NO_CALL, assert_in_order, fixture::Fixture};

#[tokio::test]
async fn an_id_is_accepted_by_its_first_characters() {
    let fixture = Fixture::start(&[("book", "read")]).await;
    fixture.http.script("/book", [Reply::status(404)]);
    // Calls of one request have ids that differ late; each is shown as far as it is unique.
    let calls = r#"{"tool":"book","arguments":{"n":1}}
{"tool":"book","arguments":{"n":2}}
"#;
    fixture.out(&["submit", &fixture.file("calls.jsonl", calls)]).await;
    let failed = async || Some(fixture.calls(&["--state", "failed"]).await).filter(|calls| calls.len() == 2);
    let calls = until("both have failed", failed).await;
    let [second, first] = &calls[..] else { panic!("two calls") };

    let listed = fixture.out(&["history"]).await;
    assert!(listed.lines().all(|line| line.chars().count() <= 80), "also where nothing is a terminal: {listed}");
    let shown: Vec<&str> = listed.lines().skip(1).map(|line| line.split_once(' ').unwrap().0).collect();
    assert_eq!(shown.len(), 2, "{listed}");
    for (short, id) in shown.iter().zip([second, first]) {
        assert!(id.starts_with(short) && short.len() >= 13, "{short} of {id}");
        fixture.shows(&["show", short], &["call          ", id]).await;
        fixture.shows(&["show", &short.to_uppercase().replace('-', "")], &[id]).await;
    }
    let shared = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
    ambiguous(&fixture, &first[..shared], [first, second]).await;
    let done = fixture.run(&["replay", &NO_CALL[..20]]).await;
    assert!(done.code == 1 && done.err.contains("\nsee redial tasks and redial history"), "{done:?}");

    let page = fixture.json(&["history", "--before", shown[0]]).await;
    assert_eq!((page.len(), page[0]["call"].as_str()), (1, Some(first.as_str())));
    let lines = fixture.json(&["redrive", shown[1]]).await;
    assert_eq!(lines[0]["redrive_of"].as_str(), Some(first.as_str()));
}

async fn ambiguous(fixture: &Fixture, shared: &str, ids: [&str; 2]) {
    for command in ["show", "cancel", "redrive"] {
        let done = fixture.run(&[command, shared]).await;
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{command}: {done:?}");
        let parts =
            ["several ids begin with ", shared, ids[0], "call book, failed", ids[1], "allowed: as many characters"];
        assert_in_order(&done.err, &parts);
        assert!(done.err.lines().all(|line| line.chars().count() <= 80), "{done:?}");
    }
}
