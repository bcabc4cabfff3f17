//! Postgres with a standby: which host is used, when it changes, and what an outage is; NATS as a cluster. `./dev chaos
//! --cluster --standby` does the same under load.

mod cluster;
mod lost_commits;

use std::time::Duration;

use redial_store::{Purpose, Store, StoreConfig, StoreError, Time, admin};
use redial_test_stack::{PostgresPair, until_within};
use sqlx::{Connection as _, PgConnection};

const LONG: Duration = Duration::from_mins(1);
const DATABASE: &str = "failover";

async fn open(url: String) -> Store {
    Store::connect(&StoreConfig { url, connections: 4, purpose: Purpose::Dispatch }).await.unwrap()
}

async fn pair() -> PostgresPair {
    let pair = PostgresPair::start().await;
    admin::create_database(&pair.url("redial"), DATABASE).await.unwrap();
    admin::migrate(&pair.url(DATABASE)).await.unwrap();
    pair
}

/// A write of any kind, until it succeeds; fails the test for an error that is no outage.
async fn write(store: &Store, number: u32) {
    until_within(LONG, "a write succeeds", async || match store.set_stream_replicas(number).await {
        Ok(()) => Some(()),
        Err(error) => {
            assert!(error.is_transient(), "{error:?}");
            None
        }
    })
    .await;
}

/// The error of a write, which is tried once.
async fn failure(store: &Store) -> Option<StoreError> {
    let error = store.delete_old_actions(Time::UNIX_EPOCH, Time::UNIX_EPOCH, 1).await.err()?;
    assert!(error.is_transient() && error.is_outage() && !error.is_timeout(), "{error:?}");
    Some(error)
}

/// Waits until the server itself refuses a write: SQLSTATE 25006, on a connection that was open before.
async fn is_refused(pair: &PostgresPair, store: &Store) {
    until_within(LONG, "the server itself refuses a write", async || {
        let error = failure(store).await?;
        if let StoreError::Sql(sqlx::Error::Database(db)) = &error
            && db.code().as_deref() == Some("25006")
        {
            return Some(());
        }
        // Perhaps no connection from before was left: another one is opened while it may be.
        pair.set("default_transaction_read_only", "off").await;
        write(store, 1).await;
        pair.set("default_transaction_read_only", "on").await;
        None
    })
    .await;
}

/// What a server has on record, asked directly.
async fn written(url: &str) -> i16 {
    let mut db = PgConnection::connect(url).await.unwrap();
    sqlx::query_scalar("SELECT replicas FROM stream_settings").fetch_one(&mut db).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "nightly: servers of its own with a standby"]
async fn the_writable_host_on_the_newest_timeline_is_used() {
    let mut pair = pair().await;
    let store = open(pair.url(DATABASE)).await;
    write(&store, 1).await;
    assert_eq!(written(&pair.primary_url(DATABASE)).await, 1);

    pair.kill_primary().await;
    assert!(failure(&store).await.is_some(), "there is no primary");
    pair.promote().await;
    write(&store, 3).await;
    assert_eq!(written(&pair.primary_url(DATABASE)).await, 3);

    // It still takes writes, and begins where it was killed.
    pair.start_other().await;
    assert_eq!(written(&pair.other_url(DATABASE)).await, 1, "an old primary");
    write(&open(pair.url(DATABASE)).await, 4).await;
    assert_eq!(written(&pair.primary_url(DATABASE)).await, 4, "a new process asks both hosts");
    pair.kill_primary().await;
    until_within(LONG, "the old primary is refused", async || {
        let error = failure(&store).await.expect("an old primary was used");
        error.to_string().contains("is an old primary: it is on timeline 1").then_some(())
    })
    .await;
    assert_eq!(written(&pair.other_url(DATABASE)).await, 1);

    pair.start_primary().await;
    write(&store, 5).await;
    assert_eq!(written(&pair.primary_url(DATABASE)).await, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "nightly: servers of its own with a standby"]
async fn a_server_that_takes_no_writes_is_an_outage() {
    let mut pair = pair().await;
    let store = open(pair.primary_url(DATABASE)).await;
    write(&store, 1).await;

    pair.set("default_transaction_read_only", "on").await;
    is_refused(&pair, &store).await;
    // Each session of the server reads the setting for itself, one a moment later than another.
    let told = until_within(LONG, "the reason is told", async || {
        let error = failure(&store).await?;
        matches!(error, StoreError::NoPrimary(_)).then(|| error.to_string())
    });
    assert!(told.await.contains("is read-only (default_transaction_read_only)"));
    pair.set("default_transaction_read_only", "off").await;
    write(&store, 3).await;

    let standby = StoreConfig { url: pair.other_url(DATABASE), connections: 1, purpose: Purpose::Audit };
    let error = admin::ping(&standby.url).await.unwrap_err();
    assert!(matches!(&error, StoreError::NoPrimary(why) if why.ends_with("is a standby")), "{error:?}");
    let any = format!("{}?target_session_attrs=any", standby.url);
    admin::ping(&any).await.unwrap();

    // Commits wait for the standby, and return when it is back.
    pair.kill_other().await;
    let back = async {
        let mut db = PgConnection::connect(&pair.primary_url(DATABASE)).await.unwrap();
        until_within(LONG, "a commit waits", async || {
            let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')";
            sqlx::query_scalar::<_, bool>(waits).fetch_one(&mut db).await.ok()?.then_some(())
        })
        .await;
        assert_eq!(written(&pair.primary_url(DATABASE)).await, 3, "nobody sees it yet");
        pair.start_other().await;
    };
    tokio::join!(write(&store, 4), back);
    assert_eq!(written(&pair.primary_url(DATABASE)).await, 4);

    // SQLSTATE 57P03, as of a server that is starting up.
    pair.kill_other().await;
    pair.start_other_closed().await;
    let error = admin::ping(&pair.other_url(DATABASE)).await.unwrap_err();
    assert!(error.is_transient() && error.is_outage(), "{error:?}");
}
