//! The windows of the short queue, from what a dispatcher sees on the stream.

use std::{collections::BTreeMap, time::Duration};

use redial_engine::window::{LEAST, Windows, pack_size};
use redial_records::{Backlog, BacklogPart, LiveConsumer};

const TENANT: &str = "acme";
const OTHER: &str = "zebra";

/// First attempts of a tenant that wait for a tool.
fn waits(tool: &str, tenant: &str) -> BacklogPart {
    BacklogPart { tool: tool.to_owned(), tenant: tenant.to_owned(), backlog: Backlog::Job }
}

fn consumer(name: &str, tools: &[&str]) -> LiveConsumer {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    LiveConsumer { name: name.to_owned(), pool: "default".to_owned(), tools, slots: 10, workers: 1 }
}

fn windows(consumers: &[LiveConsumer]) -> Windows {
    let mut windows = Windows::default();
    windows.set_consumers(consumers);
    check(&mut windows, 0, &[]);
    windows
}

fn check(windows: &mut Windows, second: u64, depths: &[(&str, &str, u64)]) {
    let depths = depths.iter().map(|(of, tool, n)| (((*of).to_owned(), (*tool).to_owned()), *n)).collect();
    windows.set_depths(&depths, Duration::from_secs(second));
}

/// What was published is on the stream.
fn arrive(windows: &mut Windows, tool: &str, count: u64) {
    (0..count).for_each(|_| windows.arrived("default", tool));
}

fn claim(windows: &mut Windows, tool: &str, count: usize) -> usize {
    (0..count).filter(|_| windows.claimed(tool)).count()
}

/// How many calls of the tool are published at once, until one waits.
fn admitted(windows: &mut Windows, tool: &str) -> u64 {
    (0..1_000_000).take_while(|_| windows.admit(tool, TENANT).is_some()).count() as u64
}

#[test]
fn what_no_live_worker_has_is_not_published() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    assert_eq!(windows.admit("a", TENANT).as_deref(), Some("default"));
    assert_eq!((windows.admit("b", TENANT), windows.is_served("b")), (None, false));
    windows.set_consumers(&[]);
    assert_eq!((windows.admit("a", TENANT), windows.is_served("a")), (None, false));
}

#[test]
fn three_dispatchers_publish_at_most_twice_a_window() {
    let mut three = [(); 3].map(|()| windows(&[consumer("default", &["a"])]));
    let mut stream = 0;
    for second in 1..20 {
        let seen = stream;
        for one in &mut three {
            check(one, second, &[("default", "a", seen)]);
            one.set_waiting([]);
            let more = admitted(one, "a");
            arrive(one, "a", more);
            stream += more;
        }
        assert!(stream <= 2 * LEAST, "{stream}");
    }
    assert!(stream >= LEAST);
}

#[test]
fn so_they_do_if_two_of_them_last_looked_when_the_stream_was_empty() {
    let [mut busy, mut idle, mut late] = [(); 3].map(|()| windows(&[consumer("default", &["a"])]));
    let mut stream = 0;
    for second in 1..40 {
        check(&mut busy, second, &[("default", "a", stream)]);
        busy.set_waiting([]);
        let more = admitted(&mut busy, "a");
        arrive(&mut busy, "a", more);
        stream += more;
    }
    assert_eq!(stream, LEAST);
    stream += admitted(&mut idle, "a") + admitted(&mut late, "a");
    assert_eq!(stream, 2 * LEAST);
}

#[test]
fn nothing_is_published_to_a_consumer_before_the_stream_was_checked() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    let both = [consumer("default", &["a"]), consumer("default+2", &["b"])];
    windows.set_consumers(&both);
    assert_eq!((windows.admit("b", TENANT), windows.is_served("b")), (None, true));
    check(&mut windows, 1, &[("default+2", "b", LEAST - 400)]);
    assert_eq!(windows.orders(&[waits("b", TENANT)])[0].most, 200);
    // Its workers vanish for a moment: what was published before is not forgotten.
    windows.set_consumers(&both[..1]);
    windows.set_consumers(&both);
    assert_eq!(windows.orders(&[waits("b", TENANT)]), []);
}

#[test]
fn retries_and_first_attempts_share_the_room() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    let part = |backlog| [BacklogPart { backlog, ..waits("a", TENANT) }];
    let [retries] = &windows.orders(&part(Backlog::Retry))[..] else { panic!("one consumer") };
    let most = u64::from(retries.most);
    windows.publish("default", "a", TENANT, most - 200);
    assert_eq!(windows.orders(&part(Backlog::Job))[0].most, 200);
    windows.publish("default", "a", TENANT, 200);
    assert_eq!(windows.orders(&part(Backlog::Job)), []);
}

#[test]
fn nothing_new_is_published_while_something_of_the_tool_waits() {
    let mut windows = windows(&[consumer("default", &["a", "b"])]);
    windows.set_waiting(&[waits("a", TENANT)]);
    assert_eq!(windows.admit("a", TENANT), None);
    assert!(windows.admit("b", TENANT).is_some());
    let orders = windows.orders(&[waits("a", TENANT), waits("gone", TENANT)]);
    assert_eq!(orders.iter().map(|order| order.part.tool.as_str()).collect::<Vec<_>>(), ["a"]);
    windows.set_waiting([]);
    assert!(windows.admit("a", TENANT).is_some());
}

#[test]
fn a_tool_that_does_not_move_keeps_no_other_out() {
    let mut windows = windows(&[consumer("models", &["slow", "quick"])]);
    let slow = admitted(&mut windows, "slow");
    assert!((LEAST / 2..LEAST).contains(&slow));
    check(&mut windows, 1, &[("models", "slow", slow)]);
    windows.set_waiting(&[waits("slow", TENANT)]);
    assert!(windows.admit("quick", TENANT).is_some());
}

#[test]
fn the_window_holds_two_seconds_of_what_busy_workers_claim() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    for second in 1..10 {
        claim(&mut windows, "a", 10_000);
        check(&mut windows, second, &[]);
    }
    // Half of the window at once; the next check sees those, or not any more.
    assert!((9_500..=10_000).contains(&admitted(&mut windows, "a")));
    // A tool that is not called can do as much as before.
    for second in 10..100 {
        check(&mut windows, second, &[]);
    }
    windows.set_waiting([]);
    assert!((9_500..=10_000).contains(&admitted(&mut windows, "a")));
    // One whose jobs wait does what it does.
    for second in 100..110 {
        claim(&mut windows, "a", 100);
        check(&mut windows, second, &[("default", "a", 1)]);
    }
    windows.set_waiting([]);
    assert!(admitted(&mut windows, "a") <= LEAST);
}

/// Publishing may take longer than the time between two checks.
#[test]
fn what_is_under_way_takes_room_until_it_arrives() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    assert_eq!(admitted(&mut windows, "a"), LEAST / 2);
    for second in 1..5 {
        check(&mut windows, second, &[]);
    }
    windows.set_waiting([]);
    assert_eq!(admitted(&mut windows, "a"), LEAST / 4, "half of what is left");
    arrive(&mut windows, "a", LEAST / 2 + LEAST / 4);
    // It may have arrived after the check that is noted now.
    check(&mut windows, 5, &[]);
    windows.set_waiting([]);
    assert_eq!(admitted(&mut windows, "a"), LEAST / 8);
}

#[test]
fn room_that_was_kept_for_nothing_is_free_again() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    assert_eq!(admitted(&mut windows, "a"), LEAST / 2);
    for second in 1..60 {
        check(&mut windows, second, &[]);
    }
    windows.set_waiting([]);
    assert_eq!(admitted(&mut windows, "a"), LEAST / 2);
}

#[test]
fn claims_of_a_tool_that_waits_ask_for_another_check() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    let window = usize::try_from(LEAST).unwrap();
    assert_eq!(claim(&mut windows, "a", window), 0);
    windows.set_waiting(&[waits("a", TENANT)]);
    assert_eq!(claim(&mut windows, "a", window), 8);
    assert_eq!(claim(&mut windows, "gone", window), 0);
}

#[test]
fn room_for_a_few_jobs_is_left_until_there_is_more() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    let waiting = [waits("a", TENANT)];
    check(&mut windows, 1, &[("default", "a", LEAST - 100)]);
    assert_eq!((windows.orders(&waiting), windows.has_room("a")), (Vec::new(), false));
    assert!(windows.admit("a", TENANT).is_some());
    check(&mut windows, 2, &[("default", "a", LEAST - 300)]);
    assert_eq!((windows.orders(&waiting)[0].most, windows.has_room("a")), (150, true));
}

#[test]
fn jobs_are_spread_by_the_slots_of_the_workers() {
    let small = LiveConsumer { slots: 2, ..consumer("default+2", &["a"]) };
    let mut windows = windows(&[consumer("default", &["a", "b"]), small]);
    let mut counts = BTreeMap::<String, u32>::new();
    for _ in 0..120 {
        *counts.entry(windows.admit("a", TENANT).unwrap()).or_default() += 1;
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [100, 20]);
    assert!((0..50).all(|_| windows.admit("b", TENANT).as_deref() == Some("default")));
}

#[test]
fn a_check_is_wanted_before_the_window_is_used_up() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    assert!(!windows.is_low("a"));
    for _ in 0..LEAST / 3 {
        windows.admit("a", TENANT).unwrap();
    }
    assert!(windows.is_low("a") && windows.admit("a", TENANT).is_some());
    check(&mut windows, 1, &[]);
    assert!(!windows.is_low("a"));
}

/// What is published last is claimed soon: the window holds what is claimed in a moment, and a quarter of the slots.
#[test]
fn while_several_tenants_are_active_the_window_is_short() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    assert!(windows.admit("a", OTHER).is_some());
    arrive(&mut windows, "a", 1);
    check(&mut windows, 1, &[]);
    assert_eq!(admitted(&mut windows, "a"), 1, "half of a quarter of ten slots");
    for second in 2..10 {
        claim(&mut windows, "a", 1_000);
        check(&mut windows, second, &[]);
        windows.set_waiting([]);
        arrive(&mut windows, "a", 1);
    }
    assert_eq!(admitted(&mut windows, "a"), 40, "half of what is claimed in 80 ms");
    for second in 10..4_000 {
        check(&mut windows, second, &[]);
    }
    windows.set_waiting([]);
    arrive(&mut windows, "a", 100);
    assert!(admitted(&mut windows, "a") >= LEAST / 4, "the other tenant was active an hour ago");
}

#[test]
fn a_call_of_a_tenant_that_got_less_goes_before_those_that_wait() {
    let mut windows = windows(&[consumer("default", &["a", "b"])]);
    let flood = admitted(&mut windows, "a");
    assert_eq!(flood, LEAST / 2);
    windows.set_waiting(&[waits("a", TENANT)]);
    assert_eq!(windows.admit("a", TENANT), None);
    let ahead = (0..1_000_000).take_while(|_| windows.admit("a", OTHER).is_some()).count() as u64;
    assert_eq!(ahead, flood, "until it got as much");
    assert_eq!(windows.admit("a", OTHER), None, "it waits now, too");
    // What the other one got is forgotten in a few seconds, and what it got, too.
    arrive(&mut windows, "a", 2 * flood);
    for second in 2..6 {
        check(&mut windows, second, &[]);
    }
    windows.set_waiting(&[waits("a", OTHER)]);
    windows.publish("default", "a", OTHER, 100);
    assert!(windows.admit("a", TENANT).is_some());
}

#[test]
fn tenants_that_wait_get_equal_parts_of_the_room() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    for second in 1..10 {
        claim(&mut windows, "a", 1_000);
        check(&mut windows, second, &[]);
    }
    let orders = |windows: &Windows, tenants: &[&str]| {
        let waiting: Vec<_> = tenants.iter().map(|tenant| waits("a", tenant)).collect();
        let orders = windows.orders(&waiting).into_iter();
        orders.map(|order| (order.part.tenant, order.most)).collect::<Vec<_>>()
    };
    let tenants = ["t1", "t2", "t3", "t4"];
    windows.set_waiting(&tenants.map(|tenant| waits("a", tenant)));
    let parts = tenants.map(|tenant| (tenant.to_owned(), 10));
    assert_eq!(orders(&windows, &tenants), parts);
    windows.publish("default", "a", "t1", 34);
    let of_two = |names: [&str; 3]| names.map(|name| (name.to_owned(), 2));
    assert_eq!(orders(&windows, &tenants), of_two(["t1", "t2", "t3"]), "the first ones get what there is");
    windows.had_turn(&waits("a", "t3"));
    assert_eq!(orders(&windows, &tenants), of_two(["t4", "t1", "t2"]), "each has its turn");
    windows.had_turn(&waits("a", "t2"));
    assert_eq!(orders(&windows, &tenants), of_two(["t3", "t4", "t1"]));
    windows.had_turn(&BacklogPart { backlog: Backlog::Retry, ..waits("a", "t1") });
    assert_eq!(orders(&windows, &tenants), of_two(["t3", "t4", "t1"]), "retries have turns of their own");
}

/// Many tenants that each got less than one that waits would fill the stream otherwise.
#[test]
fn those_that_go_ahead_are_bounded_together() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    windows.publish("default", "a", TENANT, 1_000_000);
    arrive(&mut windows, "a", 1_000_000);
    check(&mut windows, 1, &[]);
    check(&mut windows, 2, &[]);
    windows.publish("default", "a", TENANT, 1_000_000);
    windows.set_waiting(&[waits("a", TENANT)]);
    arrive(&mut windows, "a", 1_000_000);
    check(&mut windows, 3, &[]);
    check(&mut windows, 4, &[]);
    windows.publish("default", "a", TENANT, 10);
    let ahead = |n: usize| windows.admit("a", &format!("tenant {n}")).is_some();
    assert!((0..1_000_000).map(ahead).take_while(|ahead| *ahead).count() <= 2 * 2_048);
}

/// A tenant whose first call comes while another one floods must not find a long queue.
#[test]
fn where_several_tenants_are_declared_the_window_is_short_from_the_start() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    windows.expect_several_tenants(true);
    assert_eq!(admitted(&mut windows, "a"), 1);
}

#[test]
fn the_window_is_longer_where_feeding_takes_longer() {
    let mut windows = windows(&[consumer("default", &["a"])]);
    windows.expect_several_tenants(true);
    for second in 1..10 {
        claim(&mut windows, "a", 1_000);
        check(&mut windows, second, &[]);
    }
    windows.fed_in(Duration::from_millis(5));
    let orders = |windows: &Windows| windows.orders(&[waits("a", TENANT)]).iter().map(|order| order.most).sum::<u32>();
    assert_eq!(orders(&windows), 40);
    windows.fed_in(Duration::from_millis(100));
    assert_eq!(orders(&windows), 200, "twice what is claimed meanwhile");
}

#[test]
fn packs_leave_something_for_every_worker() {
    let of = |workers, slots, jobs| pack_size(&LiveConsumer { workers, slots, ..consumer("default", &["a"]) }, jobs);
    assert_eq!(of(1, 1_000, 1), 1, "a lone job is a message of its own");
    assert_eq!(of(1, 1_000, 512), 64);
    assert_eq!(of(4, 4_000, 512), 32);
    assert_eq!(of(4, 4_000, 100), 6);
    assert_eq!(of(4, 32, 512), 2, "a worker has eight slots");
    assert_eq!((of(1, 3, 512), of(0, 0, 512)), (1, 1));
}
