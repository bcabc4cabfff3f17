//! The windows of the short queue, from what a dispatcher sees on the stream: histories, and what may be published then.

use std::{collections::BTreeMap, time::Duration};

use redial_engine::window::{LEAST, Round, Windows, pack_size};
use redial_records::{Backlog, BacklogPart, LiveConsumer};

const TENANT: &str = "acme";

/// Reads `tool`, `tool:tenant` or `tool:tenant:retry`.
fn part(written: &str) -> BacklogPart {
    let mut words = written.split(':');
    let tool = words.next().unwrap().to_owned();
    let tenant = words.next().unwrap_or(TENANT).to_owned();
    let backlog = if words.next().is_some() { Backlog::Retry } else { Backlog::Job };
    BacklogPart { tool, tenant, backlog }
}

/// Reads the parts in a line; `part=count` of one says how many calls wait there, `tokens=count` how many retries of a
/// tool may run.
fn parts_of(written: &[&str]) -> Vec<BacklogPart> {
    let parts = written.iter().filter(|word| !word.starts_with("tokens="));
    parts.map(|word| part(word.split('=').next().unwrap())).collect()
}

/// Divides the room of a round; returns what each part gets, in the order of their first turns.
fn divide(round: &mut Round, written: &[&str]) -> String {
    let numbers = written.iter().filter_map(|word| word.split_once('='));
    let mut counts: BTreeMap<String, u32> =
        numbers.map(|(of, count)| (name(&part(of)), count.parse().unwrap())).collect();
    let tokens = counts.remove(&name(&part("tokens"))).unwrap_or(u32::MAX);
    for part in parts_of(written) {
        round.allow(&part.tool, tokens);
    }
    let mut got = Vec::<(String, u32)>::new();
    while let Some(order) = round.next(1_000) {
        let name = name(&order.part);
        let waits = counts.get_mut(&name);
        let taken = waits.as_ref().map_or(order.most, |waits| order.most.min(**waits));
        if let Some(waits) = waits {
            *waits -= taken;
        }
        round.took(&order, taken);
        match got.iter_mut().find(|(of, _)| *of == name) {
            Some((_, sum)) => *sum += taken,
            None => got.push((name, taken)),
        }
    }
    let told: Vec<String> = got.iter().map(|(name, sum)| format!("{name} {sum}")).collect();
    if told.is_empty() { "none".to_owned() } else { told.join(", ") }
}

fn name(part: &BacklogPart) -> String {
    format!("{}:{}{}", part.tool, part.tenant, if part.backlog.is_retry() { ":retry" } else { "" })
}

fn consumer(name: &str, tools: &[&str]) -> LiveConsumer {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    LiveConsumer { name: name.to_owned(), pool: "default".to_owned(), tools, slots: 10, workers: 1 }
}

/// One dispatcher's windows, and who lives.
#[derive(Default)]
struct Play {
    windows: Windows,
    consumers: Vec<LiveConsumer>,
    looks: u64,
}

impl Play {
    /// Makes a consumer `default` with the tool `a`, on an empty stream.
    fn new() -> Self {
        let mut play = Self::default();
        play.take("consumer default a");
        play.take("look");
        play
    }

    /// Lets one line of a history happen; returns the answer to a question.
    fn take(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split(' ').collect();
        let windows = &mut self.windows;
        let answer = match words[..] {
            [times, "times", ..] => {
                let repeated = line.split_once("times ").unwrap().1;
                for _ in 0..times.parse().unwrap() {
                    repeated.split("; ").for_each(|line| drop(self.take(line)));
                }
                return None;
            }
            ["admit", tool, ref tenant @ ..] => {
                windows.admit(tool, tenant.first().unwrap_or(&TENANT)).unwrap_or_else(|| "nowhere".to_owned())
            }
            ["fill", tool, ref tenant @ ..] => {
                let tenant = tenant.first().unwrap_or(&TENANT);
                (0..1_000_000).take_while(|_| windows.admit(tool, tenant).is_some()).count().to_string()
            }
            ["spread", tool, count] => {
                let mut counts = BTreeMap::<String, u32>::new();
                (0..count.parse().unwrap()).for_each(|_: u32| {
                    *counts.entry(windows.admit(tool, TENANT).unwrap()).or_default() += 1;
                });
                format!("{counts:?}")
            }
            ["claim", tool, count] => {
                (0..count.parse().unwrap()).filter(|_: &u32| windows.claimed(tool)).count().to_string()
            }
            ["orders", ref parts @ ..] => divide(&mut windows.round(&parts_of(parts)), parts),
            ["feed", ref parts @ ..] => self.feed(parts),
            ["served", tool] => windows.is_served(tool).to_string(),
            ["low", tool] => windows.is_low(tool).to_string(),
            ["room", tool] => windows.has_room(tool).to_string(),
            _ => {
                self.change(&words);
                return None;
            }
        };
        Some(answer)
    }

    /// Plays a round whose orders are carried out.
    fn feed(&mut self, parts: &[&str]) -> String {
        let mut round = self.windows.round(&parts_of(parts));
        let told = divide(&mut round, parts);
        for one in told.split(", ").filter_map(|one| one.split_once(' ')) {
            let part = part(one.0);
            self.windows.had_turn(&part);
            self.windows.publish("default", &part.tool, &part.tenant, one.1.parse().unwrap());
        }
        self.windows.fed(&round, Duration::ZERO);
        told
    }

    fn change(&mut self, words: &[&str]) {
        match *words {
            ["consumer", name, tools, ref slots @ ..] => {
                let consumer = consumer(name, &tools.split(',').collect::<Vec<_>>());
                let slots = slots.first().map_or(consumer.slots, |slots| slots.parse().unwrap());
                self.consumers.push(LiveConsumer { slots, ..consumer });
                self.windows.set_consumers(&self.consumers);
            }
            ["gone", name] => {
                self.consumers.retain(|consumer| consumer.name != name);
                self.windows.set_consumers(&self.consumers);
            }
            ["look", ref depths @ ..] => {
                let depth = |written: &&str| {
                    let (of, count) = written.split_once('=').unwrap();
                    let (consumer, tool) = of.split_once('/').unwrap();
                    ((consumer.to_owned(), tool.to_owned()), count.parse().unwrap())
                };
                self.windows.set_depths(&depths.iter().map(depth).collect(), Duration::from_secs(self.looks));
                self.looks += 1;
            }
            ["waiting", ref parts @ ..] => {
                self.windows.round(&parts_of(parts));
            }
            ["arrive", tool, count] => {
                (0..count.parse().unwrap()).for_each(|_: u64| self.windows.arrived("default", tool));
            }
            ["publish", tool, tenant, count] => {
                self.windows.publish("default", tool, tenant, count.parse().unwrap());
            }
            ["turn", written] => self.windows.had_turn(&part(written)),
            ["fed", ms] => self.windows.fed(&Round::default(), Duration::from_millis(ms.parse().unwrap())),
            ["several"] => self.windows.expect_several_tenants(true),
            _ => panic!("{words:?}"),
        }
    }

    /// Counts the calls of the tool `a` that are published at once, until one waits.
    fn fill(&mut self) -> u64 {
        self.take("fill a").unwrap().parse().unwrap()
    }
}

#[test]
fn every_history_goes_as_it_is_told() {
    let told = include_str!("window/histories.txt").split("\n\n").map(|history| {
        let mut play = Play::default();
        let mut told = Vec::new();
        for line in history.trim().lines() {
            let answer = if line.starts_with('#') { None } else { play.take(line) };
            told.push(answer.map_or_else(|| line.to_owned(), |answer| format!("{line}\n    {answer}")));
        }
        told.join("\n")
    });
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n\n"));
}

#[test]
fn three_dispatchers_publish_at_most_twice_a_window() {
    let mut three = [(); 3].map(|()| Play::new());
    let mut stream = 0;
    for _ in 1..20 {
        let seen = stream;
        for one in &mut three {
            one.take(&format!("look default/a={seen}"));
            one.take("waiting");
            let more = one.fill();
            one.take(&format!("arrive a {more}"));
            stream += more;
        }
        assert!(stream <= 2 * LEAST, "{stream}");
    }
    assert!(stream >= LEAST);
}

/// Many tenants that each got less than one that waits would fill the stream otherwise.
#[test]
fn those_that_go_ahead_are_bounded_together() {
    let mut play = Play::new();
    for waiting in ["waiting", "waiting a"] {
        play.take("publish a acme 1000000");
        play.take(waiting);
        play.take("arrive a 1000000");
        play.take("2 times look");
    }
    play.take("publish a acme 10");
    let ahead = |n: usize| play.windows.admit("a", &format!("tenant {n}")).is_some();
    assert!((0..1_000_000).map(ahead).take_while(|ahead| *ahead).count() <= 2 * 2_048);
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
