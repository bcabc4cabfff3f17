//! Tokens, and those that were created with them.

use std::collections::BTreeSet;

use redial_proto::{ApiToken, Caller, Door, Tenant, TokenDescendant, TokenExpiry, TokenId, TokenState, User, UserRole};
use redial_store::{CreatedToken, NewToken};

use crate::fixture::Fixture;

fn token(n: u8) -> ApiToken {
    ApiToken::of_random(&[n; 40])
}

fn caller(token: Option<TokenId>) -> Caller {
    Caller { tenant: Tenant::default(), user: User::default(), role: UserRole::Admin, door: Door::Http, token }
}

/// Creates a token, with another one if one is given.
async fn create(fixture: &Fixture, n: u8, parent: Option<u8>) -> CreatedToken {
    let (token, by) = (token(n), caller(parent.map(|n| token(n).id)));
    let roles = BTreeSet::from([UserRole::Admin]);
    let new = NewToken {
        id: &token.id,
        hash: token.hash(),
        tenant: &by.tenant,
        user: &by.user,
        roles: &roles,
        label: "",
        expiry: TokenExpiry::Never,
        latest: None,
        by: &by,
    };
    fixture.store.create_token(&new).await.unwrap()
}

#[tokio::test]
async fn a_token_that_is_created_while_its_ancestor_is_revoked_is_revoked_with_it() {
    let fixture = Fixture::open().await;
    for (n, parent) in [(1, None), (2, Some(1))] {
        assert!(matches!(create(&fixture, n, parent).await, CreatedToken::Done { is_new: true, .. }));
    }
    // Another dispatcher creates one with the second token, and has not committed yet.
    let mut creating = fixture.db.begin().await.unwrap();
    let ids = [2, 3].map(|n| token(n).id.to_string());
    let roles = vec!["admin".to_owned()];
    sqlx::query(include_str!("../../sql/insert_token.sql"))
        .bind(&ids[1])
        .bind("default")
        .bind("local")
        .bind(&roles)
        .bind(token(3).hash().0.as_slice())
        .bind("")
        .bind("default.local")
        .bind(None::<i64>)
        .bind(10_000_i64)
        .bind(&ids[0])
        .bind(None::<chrono::DateTime<chrono::Utc>>)
        .execute(&mut *creating)
        .await
        .unwrap();
    let store = fixture.another_store().await;
    let revoking = tokio::spawn(async move { store.revoke_token(&token(1).id, None, false, &caller(None)).await });
    fixture.waits_for_lock().await;
    creating.commit().await.unwrap();
    let revoked = revoking.await.unwrap().unwrap().unwrap();
    assert_eq!(revoked.changed, 3);
    let gone = [2, 3].map(|n| TokenDescendant { id: token(n).id, state: TokenState::Revoked });
    assert_eq!(revoked.descendants, gone);
    assert_eq!(create(&fixture, 4, Some(3)).await, CreatedToken::ParentEnded);
}

#[tokio::test]
async fn a_parent_stays_on_record_for_as_long_as_a_token_that_was_created_with_it() {
    let fixture = Fixture::open().await;
    create(&fixture, 1, None).await;
    create(&fixture, 2, Some(1)).await;
    sqlx::raw_sql("UPDATE tokens SET revoked_at = now() - interval '3 days'").execute(&fixture.db).await.unwrap();
    sqlx::raw_sql("UPDATE tokens SET revoked_at = NULL WHERE parent IS NOT NULL").execute(&fixture.db).await.unwrap();
    let cutoff = fixture.store.now().await.unwrap() - chrono::TimeDelta::days(2);
    assert_eq!(fixture.store.delete_ended_tokens(cutoff, 10).await.unwrap(), 0);
    sqlx::raw_sql("UPDATE tokens SET revoked_at = now() - interval '3 days'").execute(&fixture.db).await.unwrap();
    for _ in 0..2 {
        assert_eq!(fixture.store.delete_ended_tokens(cutoff, 10).await.unwrap(), 1, "the youngest first");
    }
}
