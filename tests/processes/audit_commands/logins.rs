//! A login that a server refuses is a mistake of a setting, not an outage.

use super::fixture::Fixture;

#[tokio::test]
async fn a_refused_login_is_no_outage() {
    let fixture = Fixture::start(&[("book", "read")]).await;
    let (_, nats_at) = fixture.nats_url.rsplit_once('@').unwrap();
    let (_, database_at) = fixture.database_url.rsplit_once('@').unwrap();
    let told = format!(
        "error: Postgres at {database_at} refused the login of user \"redial\": password authentication failed for user \
         \"redial\"; set the right user and password in database_url [invalid_configuration]\n"
    );
    let wrong = format!("postgres://redial:wrong@{database_at}");
    for command in ["history", "migrate", "health"] {
        let done = fixture.run(&[command, "--database-url", &wrong]).await;
        assert_eq!((done.code, done.out.as_str(), done.err), (2, "", told.clone()), "{command}");
    }
    let server = fixture.database_url.rsplit_once('/').unwrap().0;
    let missing = fixture.run(&["history", "--database-url", &format!("{server}/nothing")]).await;
    let part =
        "/nothing refused the login of user \"redial\": database \"nothing\" does not exist; set the right database";
    assert!(missing.code == 2 && missing.err.contains(part), "{missing:?}");

    let told = format!(
        "error: NATS at nats://{nats_at} refused the login of user \"redial\"; set the right user and password in nats_url, or \
         the right file in nats_credentials [invalid_configuration]\n"
    );
    let wrong = format!("nats://redial:wrong@{nats_at}");
    for command in [["call", "book"].as_slice(), &["health"]] {
        let done = fixture.run(&[command, &["--nats-url", &wrong]].concat()).await;
        assert_eq!((done.code, done.out.as_str(), done.err), (2, "", told.clone()), "{command:?}");
    }
}
