//! A login that a server refuses is a mistake of a setting, not an outage.

use super::fixture::Fixture;

#[tokio::test]
async fn a_refused_login_is_no_outage() {
    let fixture = Fixture::start(&[("book", "read")]).await;
    let (nats, database) = (&fixture.nats_url, &fixture.database_url);
    let address = |url: &str| url.rsplit_once('@').unwrap().1.to_owned();
    let (nats_at, database_at) = (address(nats), address(database));
    let remedy = "set the right user and password in database_url [invalid_configuration]\n";
    let wrong_password = format!("postgres://redial:wrong@{database_at}");
    let told = format!(
        "error: Postgres at {database_at} refused the login of user \"redial\": password authentication failed for user \
         \"redial\"; {remedy}"
    );
    let commands: [&[&str]; 3] = [&["history"], &["migrate"], &["health"]];
    for command in commands {
        let done = fixture.run(&[command, &["--database-url", &wrong_password]].concat()).await;
        assert_eq!((done.code, done.out.as_str(), done.err), (2, "", told.clone()), "{command:?}");
    }
    let server = database.rsplit_once('/').unwrap().0;
    let missing = fixture.run(&["history", "--database-url", &format!("{server}/nothing")]).await;
    let part =
        "/nothing refused the login of user \"redial\": database \"nothing\" does not exist; set the right database";
    assert!(missing.code == 2 && missing.err.contains(part), "{missing:?}");

    let wrong_password = format!("nats://redial:wrong@{nats_at}");
    let told = format!(
        "error: NATS at nats://{nats_at} refused the login of user \"redial\"; set the right user and password in nats_url, or \
         the right file in nats_credentials [invalid_configuration]\n"
    );
    let commands: [&[&str]; 2] = [&["call", "book"], &["health"]];
    for command in commands {
        let done = fixture.run(&[command, &["--nats-url", &wrong_password]].concat()).await;
        assert_eq!((done.code, done.out.as_str(), done.err), (2, "", told.clone()), "{command:?}");
    }
}
