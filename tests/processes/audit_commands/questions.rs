//! Questions to the record: by worker and by values inside calls; as CSV and as JSON.

use redial_test_stack::Reply;

use super::{assert_in_order, fixture::Fixture};

#[tokio::test]
async fn calls_are_found_by_what_they_hold() {
    let fixture = Fixture::start(&[("weather", "read"), ("book", "read")]).await;
    fixture
        .http
        .script("/weather", [Reply::json(r#"{"sky":"Z\u00fcrich is sunny","odd":"\u0000\ud800","huge":1e400000}"#)]);
    fixture.http.script("/book", [Reply::status(409).body("sold out")]);
    let paris =
        fixture.ended("weather", &[r#"{"city": "Paris", "of": [{"days": 3}]}"#, "--conversation", "trip"]).await;
    let rome = fixture.ended("weather", &[r#"{"city": "Rome", "of": [{"days": 3.0}]}"#]).await;
    let book = fixture.ended("book", &[r#"{"city": "Paris"}"#, "--conversation", "trip"]).await;
    let worker = fixture.json(&["workers"]).await[0]["id"].as_str().unwrap().to_owned();

    let questions: [(&[&str], &[&str]); 8] = [
        (&["--argument", "/city=Paris"], &[&book, &paris]),
        (&["--argument", "/of/0/days=3"], &[&rome, &paris]),
        (&["--argument", "/of/0/days=3", "--argument", "/city=Rome"], &[&rome]),
        (&["--output", "/sky=Zürich is sunny"], &[&rome, &paris]),
        (&["--output", "/huge=1e400000", "--limit", "1"], &[&rome]),
        (&["--contains", "Par"], &[&book, &paris]),
        (&["--worker", &worker], &[&book, &rome, &paris]),
        (&["--worker", &worker, "--class", "business_rule"], &[&book]),
    ];
    for (question, wanted) in questions {
        assert_eq!(fixture.calls(question).await, wanted, "{question:?}");
    }
    let searched = fixture.run(&["history", "--argument", "/city=Rome"]).await;
    assert!(searched.out.contains(&rome[..13]), "{searched:?}");
    assert_in_order(&searched.err, &["looked at all 3 calls, back to 20", "; matches: 1\n"]);
    let limited = fixture.run(&["history", "--argument", "/city=Paris", "--limit", "1"]).await;
    // What is behind the last one that is printed does not count as looked at: the next page begins there.
    assert_in_order(
        &limited.err,
        &["looked at 1 call, back to 20", "; matches: 1\nto go on: --before ", &book, ", or raise"],
    );
    assert!(limited.err.lines().all(|line| line.len() <= 80), "{limited:?}");
    let both = fixture.run(&["history", "--csv", "--json"]).await;
    assert!(both.code == 2 && both.err.contains("allowed: one of them"), "{both:?}");
    exports(&fixture, &paris, &book).await;
}

async fn exports(fixture: &Fixture, paris: &str, book: &str) {
    let csv = fixture.out(&["history", "--csv"]).await;
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 4, "{csv}");
    assert!(rows[0].starts_with("call,tool,state,class,message,attempts,submitted_at,"), "{csv}");
    assert!(rows[1].starts_with(&format!("{book},book,failed,business_rule,")), "{csv}");
    assert!(rows[3].starts_with(paris) && rows[3].contains(r#""{""city"": ""Paris"", ""of"""#), "{csv}");
    let none = fixture.run(&["history", "--csv", "--tool", "nothing"]).await;
    assert_eq!((none.code, none.out.lines().count(), none.err.as_str()), (0, 1, "no call on record matches\n"));
}
