//! Ids by their first characters.

use redial_testkit::Reply;

use super::{NO_CALL, assert_in_order, fixture::Fixture};

#[tokio::test]
async fn an_id_is_accepted_by_its_first_characters() {
    let fixture = Fixture::start(&[("book", "read"), ("hang", "read")]).await;
    fixture.http.script("/book", [Reply::status(404)]);
    fixture.http.script("/hang", [Reply::status(200).after(std::time::Duration::from_hours(1))]);
    let first = fixture.ended("book", &["{\"n\": 1}"]).await;
    let second = fixture.ended("book", &["{\"n\": 2}"]).await;

    let listed = fixture.out(&["history"]).await;
    let shown: Vec<&str> = listed.lines().skip(1).map(|line| line.split_once(' ').unwrap().0).collect();
    assert_eq!(shown.len(), 2, "{listed}");
    for (short, id) in shown.iter().zip([&second, &first]) {
        assert!(id.starts_with(short) && short.len() >= 13, "{short} of {id}");
        assert_in_order(&fixture.out(&["show", short]).await, &["call          ", id]);
        assert_in_order(&fixture.out(&["show", &short.to_uppercase().replace('-', "")]).await, &[id]);
    }
    let shared = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
    ambiguous(&fixture, &first[..shared], [&first, &second]).await;
    unknown(&fixture, [shown[0], &second]).await;

    let page = fixture.json(&["history", "--before", shown[0]]).await;
    assert_eq!((page.len(), page[0]["call"].as_str()), (1, Some(first.as_str())));
    let lines = fixture.json(&["redrive", shown[1]]).await;
    assert_eq!(lines[0]["redrive_of"].as_str(), Some(first.as_str()));

    let hang = fixture.out(&["call", "hang"]).await.trim().to_owned();
    fixture.http.arrived(4).await;
    assert_in_order(&fixture.out(&["cancel", &hang[..30]]).await, &[&hang, "its worker was asked to stop"]);
    without_a_database(&fixture, &hang).await;
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

async fn unknown(fixture: &Fixture, ids_of_a_call: [&str; 2]) {
    for (arguments, code) in [
        (["show", &NO_CALL[..20]], "call_not_found"),
        (["replay", &NO_CALL[..20]], "task_not_found"),
        (["watch", NO_CALL], "task_not_found"),
    ] {
        let done = fixture.run(&arguments).await;
        assert_eq!(done.code, 1, "{arguments:?}: {done:?}");
        assert_in_order(&done.err, &["on record", "\nsee redial tasks and redial history", code]);
        assert!(done.err.lines().all(|line| line.chars().count() <= 80), "{done:?}");
    }
    for call in ids_of_a_call {
        let done = fixture.run(&["watch", call]).await;
        assert_eq!(done.code, 2, "{done:?}");
        assert_in_order(&done.err, &[call, "is a call\n", "allowed: a task"]);
    }
    let done = fixture.run(&["history", "--task", "0"]).await;
    assert_eq!(done.code, 2, "{done:?}");
    assert_in_order(
        &done.err,
        &["the ids of several calls begin with 0\n", "and that of no task; allowed: the id of a task"],
    );
}

async fn without_a_database(fixture: &Fixture, id: &str) {
    let run = async |id: &str| {
        let mut command = fixture.command(&["cancel", id]);
        command.env_remove("REDIAL_DATABASE_URL");
        super::fixture::ended(command).await
    };
    let short = run(&id[..30]).await;
    assert_eq!(short.code, 2, "{short:?}");
    assert_in_order(&short.err, &[&id[..30], "is the beginning of an id", "no database_url is set", "a whole id"]);
    let whole = run(id).await;
    assert!(!whole.err.contains("database"), "{whole:?}");
}
