//! Which faults are injected and what is submitted: pure functions of the seed.

use std::fmt;

use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use redial_proto::{AgentRef, CallState, Submission, TaskSubmission, ToolEffect};
use redial_testkit::CallFacts;
use serde_json::json;

use crate::load::PlannedCall;

/// The tool that every worker has, and that runs no program.
pub(super) const ECHO: &str = "echo";
/// The agent that `tools/chaos/compose/agents.toml` declares.
const AGENT: &str = "clerk";

/// Services whose containers are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Worker,
    Models,
    Dispatcher,
    Gateway,
    Nats,
    Postgres,
}

impl Service {
    pub(super) const ALL: [Self; 6] =
        [Self::Worker, Self::Models, Self::Dispatcher, Self::Gateway, Self::Nats, Self::Postgres];

    /// Its name in the compose file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Models => "models",
            Self::Dispatcher => "dispatcher",
            Self::Gateway => "gateway",
            Self::Nats => "nats",
            Self::Postgres => "postgres",
        }
    }

    /// The networks by which Redial reaches it.
    pub(super) const fn networks(self) -> &'static [&'static str] {
        match self {
            Self::Worker | Self::Models => &["workers"],
            Self::Dispatcher | Self::Gateway => &["data", "queue"],
            Self::Nats => &["queue", "workers"],
            Self::Postgres => &["data"],
        }
    }

    /// It holds leases.
    pub(super) const fn is_worker(self) -> bool {
        matches!(self, Self::Worker | Self::Models)
    }
}

/// The names of all services whose containers must run: those that are broken, and the one of webhooks.
pub(super) fn running() -> impl Iterator<Item = &'static str> {
    Service::ALL.into_iter().map(Service::name).chain(["webhooks"])
}

/// What is done to a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `docker kill`, then `docker start`.
    Kill,
    /// SIGKILL to its process: Docker starts it again, as the compose file says.
    Crash,
    /// `docker restart`.
    Restart,
    /// `docker pause`, then `docker unpause`.
    Pause,
    /// `docker network disconnect`, then `connect`.
    Disconnect,
}

impl Fault {
    pub(super) const ALL: [Self; 5] = [Self::Kill, Self::Crash, Self::Restart, Self::Pause, Self::Disconnect];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Crash => "crash",
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Disconnect => "disconnect",
        }
    }
}

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(super) fault: Fault,
    pub(super) service: Service,
    /// Chooses the container, and the network.
    pub(super) choice: usize,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.fault.name(), self.service.name())
    }
}

/// Every fault of every service once before one comes again, in an order that the seed says.
pub(super) fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut random = StdRng::seed_from_u64(seed ^ 0xFA);
    let mut steps = Vec::with_capacity(count);
    while steps.len() < count {
        let pairs = Fault::ALL.into_iter().flat_map(|fault| Service::ALL.map(|service| (fault, service)));
        let mut round: Vec<Step> =
            pairs.map(|(fault, service)| Step { fault, service, choice: random.random_range(0..1_000) }).collect();
        round.shuffle(&mut random);
        steps.extend(round);
    }
    steps.truncate(count);
    steps
}

/// The tools that the calls are of: one that runs no program, and those of `tools/chaos/compose/tools.toml`.
pub(super) fn tools() -> Vec<String> {
    let programs = ToolEffect::ALL.iter().map(|effect| effect.as_str());
    programs.chain([ECHO]).map(str::to_owned).collect()
}

/// The calls: half of them run a program, which says in the ledger what it does, and one in twenty of these fails at first.
pub(super) fn calls(seed: u64, count: u32) -> Vec<PlannedCall> {
    let mut random = StdRng::seed_from_u64(seed ^ 0xCA);
    (0..count).map(|n| call(n, &mut random)).collect()
}

fn call(n: u32, random: &mut StdRng) -> PlannedCall {
    let tool = if random.random() { ECHO } else { ToolEffect::ALL[random.random_range(0..4)].as_str() };
    let fails = if random.random_range(0..20) == 0 { "yes" } else { "no" };
    // Some calls run whenever a fault is injected.
    let seconds = if random.random_range(0..50) == 0 { random.random_range(1..4) } else { 0 };
    let arguments = match tool {
        ECHO => json!({ "n": n }),
        _ => json!({ "n": n, "seconds": seconds, "fails": fails }),
    };
    let arguments = redial_testkit::arguments(arguments);
    let submission = Submission { key: Some(format!("compose-{n}")), ..Submission::new(tool, arguments) };
    PlannedCall { submission, cancel: false }
}

/// Tasks, each in a conversation of its own. Each calls tools of every effect.
pub(super) fn tasks(count: u32) -> Vec<TaskSubmission> {
    let one = |n| TaskSubmission {
        conversation: Some(format!("compose-{n}")),
        key: Some(format!("compose-task-{n}")),
        ..TaskSubmission::new(format!("do the work {n}"), AgentRef::Name(AGENT.to_owned()))
    };
    (0..count).map(one).collect()
}

/// A call that tests whether calls are accepted and run.
pub(super) fn probe(number: usize) -> Submission {
    let arguments = redial_testkit::arguments(json!({ "probe": number }));
    Submission { key: Some(format!("probe-{number}")), ..Submission::new(ECHO, arguments) }
}

/// Every call succeeds in the end; only of an `unsafe` one it may stay unknown whether it did.
pub(super) fn may_end(call: &CallFacts) -> bool {
    match call.state {
        CallState::Succeeded => true,
        CallState::Unknown => call.effect == ToolEffect::Unsafe,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn a_round_has_every_fault_of_every_service_once() {
        let mut round: Vec<String> = steps(7, 30).iter().map(Step::to_string).collect();
        round.sort();
        round.dedup();
        assert_eq!(round.len(), 30, "{round:?}");
        assert_eq!(steps(7, 61), steps(7, 61));
        assert_eq!(steps(7, 61).len(), 61);
        assert_ne!(steps(7, 30), steps(8, 30));
    }

    #[test]
    fn every_tool_is_called_and_some_calls_fail_at_first() {
        let text = format!("{:?}", calls(1, 1_000));
        for tool in tools() {
            assert!(text.contains(&format!("tool: {tool:?}")), "{tool}");
        }
        assert!(text.contains(r#""fails":"yes""#) && text.contains(r#""seconds":2"#));
        assert_eq!(text, format!("{:?}", calls(1, 1_000)));
    }

    #[test]
    fn the_compose_file_has_the_services_and_networks() {
        let file = include_str!("../../../../docker-compose.yml");
        for service in Service::ALL {
            let (_, of_service) = file.split_once(&format!("\n  {}:\n", service.name())).unwrap();
            let networks = of_service.split_once("\n    networks: [").unwrap().1.split_once(']').unwrap().0;
            for network in service.networks() {
                assert!(networks.split(", ").any(|one| one == *network), "{service:?}: {networks}");
            }
        }
    }

    #[test]
    fn every_service_that_does_not_end_by_itself_must_run() {
        let file = include_str!("../../../../docker-compose.yml");
        let (_, services) = file.split_once("\nservices:\n").unwrap();
        let (services, _) = services.split_once("\nnetworks:\n").unwrap();
        let mut of_file = BTreeMap::new();
        let mut name = "";
        for line in services.lines() {
            match line.strip_prefix("  ") {
                Some(line) if line.starts_with(|c: char| c.is_ascii_lowercase()) => name = line.trim_end_matches(':'),
                _ => of_file.entry(name).or_insert_with(Vec::new).push(line),
            }
        }
        let ends = |line: &&str| line.starts_with("    profiles:") || *line == r#"    restart: "no""#;
        of_file.retain(|_, lines| !lines.iter().any(ends));
        assert_eq!(of_file.into_keys().collect::<BTreeSet<_>>(), running().collect());
    }

    #[test]
    fn the_files_declare_the_tools_and_the_agent() {
        let tools_file = include_str!("../../compose/tools.toml");
        for tool in ToolEffect::ALL {
            assert!(tools_file.contains(&format!("name = {:?}\neffect = {:?}\n", tool.as_str(), tool.as_str())));
        }
        assert!(include_str!("../../compose/agents.toml").contains(&format!("[agents.{AGENT}]")));
    }
}
