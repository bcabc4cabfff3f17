//! `redial token`: a token is printed once, listed without its secret, and revoked.

use redial_proto::ApiToken;
use serde_json::json;

use super::fixture::Fixture;

#[tokio::test]
async fn a_token_is_printed_once_listed_and_revoked() {
    let fixture = Fixture::start(&[]).await;
    let none = fixture.run(&["token", "list"]).await;
    let told = "no token matches; --all lists revoked and expired ones, too\n";
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (0, "", told));

    let made = fixture.run(&["token", "create", "--label", "ci"]).await;
    let token: ApiToken = made.out.trim().parse().unwrap();
    assert_eq!((made.code, made.out.as_str()), (0, format!("{}\n", token.text()).as_str()), "nothing else, for $(…)");
    assert!(made.err.contains("stands for default.local with the roles submit, read; expires 20"), "{}", made.err);
    let made = &fixture
        .json(&["token", "create", "--for", "acme.alice", "--roles", "admin,read", "--expires", "never"])
        .await[0];
    let second: ApiToken = made["token"].as_str().unwrap().parse().unwrap();
    assert_eq!(
        (&made["id"], &made["tenant"], &made["user"], &made["roles"], made.get("expires_at")),
        (&json!(second.id), &json!("acme"), &json!("alice"), &json!(["read", "admin"]), None)
    );

    let listed = fixture.json(&["token", "list"]).await;
    let ids: Vec<&str> = listed.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [second.id.as_str(), token.id.as_str()]);
    assert_eq!(fixture.json(&["token", "list", "--tenant", "acme"]).await.len(), 1);
    let page = fixture.run(&["token", "list", "--limit", "1", "--wide"]).await;
    assert!(page.out.contains(second.id.as_str()) && !page.out.contains(token.id.as_str()), "{page:?}");
    assert_eq!(page.err, format!("there are older ones: --before {}\n", second.id));
    let next = fixture.json(&["token", "list", "--before", second.id.as_str()]).await;
    assert_eq!(next.iter().map(|line| &line["id"]).collect::<Vec<_>>(), [&json!(token.id)]);

    // Of a token that was found somewhere, its whole text is known.
    let done = fixture.out(&["token", "revoke", &token.text()]).await;
    assert_eq!(done, format!("token {} is revoked; a gateway that knows it refuses it within 10 s\n", token.id));
    let again = fixture.out(&["token", "revoke", token.id.as_str()]).await;
    assert!(again.starts_with(&format!("token {} was revoked already, 20", token.id)), "{again}");
    assert_eq!(fixture.json(&["token", "list"]).await.len(), 1);
    assert_eq!(fixture.json(&["token", "list", "--all", "--for", "local"]).await[0]["state"], "revoked");

    let unknown = fixture.run(&["token", "revoke", "aaaaaaaaaaaa"]).await;
    let told = "error: no token aaaaaaaaaaaa is on record [token_not_found]\n";
    assert_eq!((unknown.code, unknown.err.as_str()), (1, told));
    assert_eq!(fixture.json(&["actions", "--action", "tokens.create"]).await.len(), 2);
}
