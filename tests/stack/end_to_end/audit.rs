//! Queries over many calls are cheap, and so is what retention does.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use redial_proto::{CallState, ErrorClass, Tenant};
use redial_store::{
    Purpose, Store, Time,
    audit::{Filter, Inside, Limits, Search, Texts},
};
use redial_test_stack::{Servers, Stack};
use uuid::Uuid;

/// Fifty thousand calls, one a minute until now: 1 % failed (five of them are `unknown`), 1 % are ready, the others succeeded.
/// A hundred workers ran them.
async fn filled() -> Stack {
    let mut stack = Stack::on(Servers::start().await).await;
    let fill = "
         INSERT INTO calls (id, state, attempt, wake_at, tool, pool, effect, tenant, key, conversation, arguments,
                            timeout_ms, notify, submitted_at, deadline_at, published_at, finished_at, class, message)
         SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(n), 19, '0'))::uuid,
                state, CASE WHEN state = 'ready' THEN 0 ELSE 1 END, CASE WHEN state = 'ready' THEN at + interval '1 year' END, 'tool_' || n % 50, 'default', 'read',
                'default', 'key ' || n, 'conversation ' || n % 5000, '{}', 1000, false, at, at + interval '1 year', at,
                CASE WHEN state <> 'ready' THEN at END, CASE WHEN state IN ('failed', 'unknown') THEN
                CASE WHEN n % 500 = 0 THEN 'auth' ELSE 'timeout' END END, NULL
         FROM (SELECT n, clock_timestamp() - (50000 - n) * interval '1 min' AS at,
                      CASE n % 100 WHEN 0 THEN CASE n % 10000 WHEN 0 THEN 'unknown' ELSE 'failed' END WHEN 1 THEN 'ready' ELSE 'succeeded' END AS state
               FROM generate_series(1, 50000) AS n) AS made;
         INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, class, output)
         SELECT id, 1, 'worker ' || split_part(key, ' ', 2)::int % 100, submitted_at, finished_at, class, CASE WHEN class IS NULL THEN '1'::json END
         FROM calls WHERE finished_at IS NOT NULL;
         INSERT INTO call_keys SELECT tenant, key, '00000000-0000-0000-0000-000000000000', id FROM calls";
    fill_with(&stack, fill).await;
    stack.leaves_calls();
    stack
}

/// Runs statements, and makes Postgres publish the session's counters now.
async fn fill_with(stack: &Stack, statements: &str) {
    stack.execute(&format!("{statements}; ANALYZE; SELECT pg_stat_force_next_flush()")).await;
}

/// Sequential scans of the table of calls, and rows read from it.
async fn rows_read(stack: &Stack) -> (i64, i64) {
    // The partition of what was before the migrations; nearly all of it.
    let counters =
        "SELECT seq_scan, seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'calls_kept_0'";
    stack.rows(counters).await[0]
}

/// The answer of the store, and its cost: sequential scans and rows read.
async fn cost<T>(stack: &Stack, purpose: Purpose, ask: impl AsyncFnOnce(&Store) -> T) -> (T, (i64, i64)) {
    let store = stack.store(purpose).await;
    let before = rows_read(stack).await;
    let answer = ask(&store).await;
    store.close().await;
    // A connection publishes its counters when it ends.
    stack.counts(0, "pg_stat_activity WHERE datname = current_database() AND application_name = 'redial'").await;
    let after = rows_read(stack).await;
    (answer, (after.0 - before.0, after.1 - before.1))
}

#[tokio::test]
async fn queries_over_many_calls_read_few_rows() {
    let stack = filled().await;
    no_history_query_scans_the_table(&stack).await;
    a_step_of_a_search_is_bounded(&stack).await;
    an_id_is_found_by_a_range_of_the_primary_key(&stack).await;
    no_index_of_calls_has_a_column_that_every_claim_changes(&stack).await;
    a_search_within_a_tenant_is_bounded_and_finds_only_its_calls(&stack).await;
    a_step_of_retention_is_bounded(&stack).await;
    stack.finish().await;
}

async fn no_history_query_scans_the_table(stack: &Stack) {
    let filter = Filter::default;
    let ago = |minutes| Some(Utc::now() - TimeDelta::minutes(minutes));
    let worker = |name: &str| Filter { worker: Some(name.to_owned()), ..filter() };
    let questions: [(&str, usize, Filter); 16] = [
        ("no filter", 50, filter()),
        ("tool", 50, Filter { tool: Some("tool_7".to_owned()), ..filter() }),
        ("class", 50, Filter { class: Some(ErrorClass::Auth), ..filter() }),
        ("rare state", 50, Filter { state: Some(CallState::Failed), ..filter() }),
        ("rarest state", 5, Filter { state: Some(CallState::Unknown), ..filter() }),
        ("until", 50, Filter { until: ago(40_000), ..filter() }),
        ("tool and until", 50, Filter { tool: Some("tool_7".to_owned()), until: ago(30_000), ..filter() }),
        ("worker", 50, worker("worker 7")),
        ("worker and until", 50, Filter { until: ago(40_000), ..worker("worker 7") }),
        ("worker and class", 50, Filter { class: Some(ErrorClass::Timeout), ..worker("worker 0") }),
        ("nobody", 0, worker("nobody")),
        ("live state", 50, Filter { state: Some(CallState::Ready), ..filter() }),
        ("conversation", 10, Filter { conversation: Some("conversation 77".to_owned()), ..filter() }),
        ("key", 1, Filter { key: Some("key 4711".to_owned()), ..filter() }),
        ("since", 50, Filter { since: Some(Utc::now() - TimeDelta::hours(5)), ..filter() }),
        (
            "tool and since",
            6,
            Filter { tool: Some("tool_7".to_owned()), since: Some(Utc::now() - TimeDelta::minutes(310)), ..filter() },
        ),
    ];
    for (name, wanted, filter) in questions {
        let (lines, (scans, rows)) = cost(stack, Purpose::Audit, async |store| store.history(&filter, 50).await).await;
        let lines = lines.unwrap();
        assert_eq!((lines.len(), scans), (wanted, 0), "{name}: calls found, sequential scans");
        assert!(rows <= 1_500, "{name}: {rows} rows were looked at for {wanted}");
        assert!(lines.is_sorted_by(|a, b| a.call > b.call), "{name}: newest first");
    }
}

/// Every hundredth of the calls once more for another tenant, each at the time of one of the others.
const ALSO_OF_ACME: &str = "
    INSERT INTO calls (id, state, attempt, wake_at, tool, pool, effect, tenant, conversation, arguments, timeout_ms, notify,
                       submitted_at, deadline_at, published_at, finished_at, class)
    SELECT (left(id::text, 35) || 'f')::uuid, state, attempt, wake_at, tool, pool, effect, 'acme', conversation,
           '{\"city\":\"Paris\"}', timeout_ms, notify, submitted_at, deadline_at, published_at, finished_at, class
    FROM calls WHERE split_part(key, ' ', 2)::int % 100 = 0;
    INSERT INTO attempts (call_id, attempt, worker, started_at, ended_at, class, output)
    SELECT id, 1, 'worker 0', submitted_at, finished_at, class, CASE WHEN class IS NULL THEN '1'::json END
    FROM calls WHERE tenant = 'acme' AND finished_at IS NOT NULL";

async fn a_search_within_a_tenant_is_bounded_and_finds_only_its_calls(stack: &Stack) {
    fill_with(stack, ALSO_OF_ACME).await;
    let (acme, default): (Tenant, Tenant) = ("acme".parse().unwrap(), Tenant::default());
    let limits = Limits { matches: 50, looked: 100_000, time: Duration::from_mins(1) };
    let text = |text: &str| Some(text.to_owned());
    let of = |filter: Filter| Search { filter, ..Search::default() };
    let paris = Inside { arguments: vec!["/city=Paris".parse().unwrap()], ..Inside::default() };
    // Who asks, what, how many there are, and how many rows of calls all pages together may read.
    let questions: [(&str, &Tenant, Search, usize, i64); 9] = [
        ("all of acme", &acme, Search::default(), 500, 8_000),
        ("tool", &acme, of(Filter { tool: text("tool_0"), ..Filter::default() }), 500, 8_000),
        ("no such tool", &acme, Search { not_tools: vec!["tool_0".to_owned()], ..Search::default() }, 0, 2_000),
        ("class", &acme, of(Filter { class: Some(ErrorClass::Auth), ..Filter::default() }), 100, 3_000),
        ("state", &acme, of(Filter { state: Some(CallState::Unknown), ..Filter::default() }), 5, 1_000),
        ("inside", &acme, Search { inside: paris.clone(), ..Search::default() }, 500, 20_000),
        (
            "inside of others",
            &default,
            Search { inside: paris, ..of(Filter { tool: text("tool_7"), ..Filter::default() }) },
            0,
            20_000,
        ),
        ("conversation", &default, of(Filter { conversation: text("conversation 0"), ..Filter::default() }), 10, 200),
        ("key", &default, of(Filter { key: text("key 4711"), ..Filter::default() }), 1, 20),
    ];
    for (name, tenant, mut search, wanted, most) in questions {
        let mut pages = 0;
        let (found, (scans, rows)) = cost(stack, Purpose::Audit, async |store| {
            let mut found = Vec::new();
            loop {
                let page = store.of(tenant).search(&search, limits).await.unwrap();
                assert!(page.calls.len() <= 50, "{name}");
                found.extend(page.calls.iter().map(|found| found.call));
                pages += 1;
                if page.ended {
                    return found;
                }
                search.filter.before = page.last;
            }
        })
        .await;
        assert_eq!((found.len(), scans), (wanted, 0), "{name}: calls found, sequential scans");
        assert!(found.is_sorted_by(|a, b| a > b), "{name}: newest first, each once");
        assert!(rows <= most * pages, "{name}: {rows} rows were looked at in {pages} pages");
    }
}

async fn a_step_of_a_search_is_bounded(stack: &Stack) {
    // Most of them are of other tools, but each step ends after so many calls of this worker.
    let filter = Filter { worker: Some("worker 0".to_owned()), class: Some(ErrorClass::Auth), ..Filter::default() };
    let (found, (scans, rows)) = cost(stack, Purpose::Audit, async |store| store.find_calls(&filter, 100).await).await;
    let found = found.unwrap();
    assert_eq!((found.looked.len(), found.calls.len(), found.ended, scans), (100, 20, false, 0));
    assert!(rows <= 1_000, "{rows} rows were looked at");
    let before = Filter { before: found.last, ..filter.clone() };
    let (next, _) = cost(stack, Purpose::Audit, async |store| store.find_calls(&before, 1_000).await).await;
    let next = next.unwrap();
    assert_eq!((next.looked.len(), next.calls.len(), next.ended), (400, 80, true), "each call once, and then the end");

    let all = Filter::default();
    let (sizes, (scans, rows)) = cost(stack, Purpose::Audit, async |store| {
        let calls: Vec<_> = store.find_calls(&all, 1_000).await.unwrap().calls.iter().map(|found| found.call).collect();
        let texts = Texts { arguments: vec!["Paris".to_owned()], ..Texts::default() };
        let candidates = store.may_contain(&calls, &texts).await.unwrap();
        (candidates.len(), store.record_groups(&calls).await.unwrap().iter().map(Vec::len).sum::<usize>())
    })
    .await;
    assert_eq!((sizes, scans), ((0, 1_000), 0));
    assert!(rows <= 12_000, "{rows} rows were looked at for 1,000 calls");
}

async fn a_step_of_retention_is_bounded(stack: &Stack) {
    let cutoff = Utc::now() - TimeDelta::minutes(40_000);
    let (pruned, (scans, rows)) = cost(stack, Purpose::Dispatch, async |store| {
        store.prune_calls(cutoff, Time::MAX_UTC, Uuid::nil(), 1_000).await.unwrap()
    })
    .await;
    assert!((900..=1_000).contains(&pruned.deleted) && scans == 0, "{pruned:?}, {scans} sequential scans");
    assert!(rows <= 6_000, "{rows} rows were looked at to delete {pruned:?}");
}

async fn an_id_is_found_by_a_range_of_the_primary_key(stack: &Stack) {
    let (id, (scans, rows)) = cost(stack, Purpose::Audit, async |store| {
        let newest = store.find_calls(&Filter::default(), 1).await.unwrap().calls[0].call.0;
        let digits = store.unique_digits(&[newest]).await.unwrap()[0].1;
        let open = u128::MAX.checked_shr(u32::try_from(digits * 4).unwrap()).unwrap_or(0);
        let (first, last) = (newest.as_u128() & !open, newest.as_u128() | open);
        let named = store.ids_between(Uuid::from_u128(first), Uuid::from_u128(last), 2).await.unwrap();
        assert_eq!(named.len(), 1, "so many digits are of one id: {named:?}");
        let all = store.ids_between(Uuid::nil(), Uuid::max(), 11).await.unwrap();
        assert_eq!(all.len(), 11, "an ambiguous id reads no more than it lists");
        (named[0].id == newest, digits <= 12)
    })
    .await;
    assert_eq!((id, scans), ((true, true), 0));
    assert!(rows <= 30, "{rows} rows were looked at");
}

/// But for `wake_at`: a claim sets it to the end of the lease if that is earlier, which with the default lease changes
/// nothing.
async fn no_index_of_calls_has_a_column_that_every_claim_changes(stack: &Stack) {
    let indexed = "SELECT DISTINCT a.attname::text FROM pg_index i
                   JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                       AND d.refobjid = i.indrelid AND d.refobjsubid > 0
                   JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = d.refobjsubid
                   WHERE i.indrelid = 'calls'::regclass";
    let indexed: Vec<String> = stack.values(indexed).await;
    assert!(indexed.contains(&"tool".to_owned()) && indexed.contains(&"class".to_owned()), "{indexed:?}");
    for changed in ["state", "attempt", "claim_id", "worker", "started_at", "lease_until", "published_at", "publish_no"]
    {
        assert!(!indexed.contains(&changed.to_owned()), "{changed} is indexed: claims are not HOT updates any more");
    }
}
