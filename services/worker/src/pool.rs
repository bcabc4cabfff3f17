//! Pools, their permits, and the jobs that hold them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use redial_proto::{ClaimJob, Job, JobRef, ReturnedPack, limits::MAX_INLINE, turn};
use redial_tools::Tool;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::message::PulledMessage;

/// Memory for large arguments: 256 MiB.
const MEMORY_KIB: u32 = 256 * 1024;

/// The calls of one pool that this worker may run at once.
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) permits: Arc<Semaphore>,
    /// Additional limits, by tool: each model has one, and all command tools of the worker share one.
    pub(crate) tool_permits: HashMap<String, Arc<Semaphore>>,
    /// Memory for large arguments, in KiB, which all pools of the worker share.
    pub(crate) memory: Arc<Semaphore>,
    /// The shared limit of the command tools, if the pool has no other tools: there is nothing to pull without a permit.
    pub(crate) commands: Option<Arc<Semaphore>>,
}

/// The permission to run one call at a time; returned to its pool when dropped. The tool's permit is dropped first, because
/// the pool's wakes the loop that pulls the next job.
pub(crate) struct Permit {
    _memory: Option<OwnedSemaphorePermit>,
    _tool: Option<OwnedSemaphorePermit>,
    _pool: OwnedSemaphorePermit,
}

/// Which limit leaves no permit for a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LimitReached {
    Pool,
    Tool,
    Memory,
}

/// A job that was pulled, with the permit that it will run under.
pub(crate) struct PulledJob {
    pub(crate) job: Job,
    pub(crate) message: PulledMessage,
    pub(crate) permit: Permit,
    /// The jobs of its message that there are no permits for; of the first one that there is one for.
    pub(crate) rest: Option<ReturnedPack>,
}

#[derive(Default)]
pub(crate) struct Pulled {
    pub(crate) jobs: Vec<PulledJob>,
    pub(crate) returned: Vec<(ReturnedPack, PulledMessage)>,
}

impl Pool {
    /// Waits until a job of the pool may be able to run.
    pub(crate) async fn wait_for_permit(&self) {
        for permits in self.commands.iter().chain([&self.permits]) {
            drop(permits.acquire().await);
        }
    }

    /// Takes a permit for a call of this tool with arguments of `bytes`, without waiting for one.
    pub(crate) fn try_acquire(&self, tool: &str, bytes: u32) -> Result<Permit, LimitReached> {
        let acquire = |permits: &Arc<Semaphore>| Arc::clone(permits).try_acquire_owned().ok();
        let tool_permit =
            self.tool_permits.get(tool).map(|permits| acquire(permits).ok_or(LimitReached::Tool)).transpose()?;
        let memory = match usize::try_from(bytes) {
            Ok(small) if small <= MAX_INLINE => None,
            // Twice: in pieces, and put together.
            _ => {
                let kib = (bytes / 1024).saturating_mul(2).clamp(1, MEMORY_KIB);
                let memory = Arc::clone(&self.memory).try_acquire_many_owned(kib);
                Some(memory.map_err(|_| LimitReached::Memory)?)
            }
        };
        Ok(Permit { _memory: memory, _tool: tool_permit, _pool: acquire(&self.permits).ok_or(LimitReached::Pool)? })
    }
}

impl PulledJob {
    pub(crate) fn claim_job(&self) -> ClaimJob {
        ClaimJob { call: self.job.call, attempt: self.job.attempt, tool: self.job.tool.clone() }
    }

    pub(crate) fn job_ref(&self) -> JobRef {
        JobRef { call: self.job.call, attempt: self.job.attempt }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Calls of a pool, unless its tools set a concurrency, and of a model that sets none.
    pub(crate) slots: u32,
    /// Programs of all command tools.
    pub(crate) command_slots: u32,
}

/// How many calls a worker runs at once.
pub(crate) struct Slots {
    pub(crate) all: u32,
    pub(crate) by_pool: BTreeMap<String, u32>,
}

/// Returns the pools of these tools, and how many calls they run at once. A tool's limit applies to its pool, but each
/// model has its own limit: providers count requests per model, and no model waits for another. Command tools, whatever
/// their pools, also share one limit, because they share the machine's cores.
pub(crate) fn pools(tools: &[Tool], limits: Limits) -> (Vec<Pool>, Slots) {
    let mut by_pool: HashMap<&str, Vec<&Tool>> = HashMap::new();
    for tool in tools {
        by_pool.entry(tool.spec.pool.as_str()).or_default().push(tool);
    }
    let (commands, memory) = (permits(limits.command_slots), permits(MEMORY_KIB));
    let (mut all, mut programs) = (0_u32, 0_u32);
    let (mut pools, mut slots) = (Vec::with_capacity(by_pool.len()), BTreeMap::new());
    for (name, tools) in by_pool {
        let only_commands = tools.iter().all(|tool| tool.starts_programs);
        let limit = if name == turn::POOL {
            tools.iter().map(|model| model.concurrency.unwrap_or(limits.slots)).sum()
        } else {
            tools.iter().find_map(|tool| tool.concurrency).unwrap_or(limits.slots)
        };
        let limit = if only_commands { limit.min(limits.command_slots) } else { limit };
        let count = if only_commands { &mut programs } else { &mut all };
        *count = count.saturating_add(limit);
        slots.insert(name.to_owned(), limit);
        let own_limit = |tool: &&Tool| match tool.spec.pool.as_str() {
            turn::POOL => Some(permits(tool.concurrency.unwrap_or(limits.slots))),
            _ => tool.starts_programs.then(|| Arc::clone(&commands)),
        };
        pools.push(Pool {
            name: name.to_owned(),
            memory: Arc::clone(&memory),
            permits: permits(limit),
            tool_permits: tools.iter().filter_map(|tool| Some((tool.spec.name.clone(), own_limit(tool)?))).collect(),
            commands: only_commands.then(|| Arc::clone(&commands)),
        });
    }
    (pools, Slots { all: all.saturating_add(programs.min(limits.command_slots)), by_pool: slots })
}

fn permits(limit: u32) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(usize::try_from(limit).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { slots: 64, command_slots: 4 };

    fn named(name: &str) -> Tool {
        let mut tool = Tool::echo();
        tool.spec.name = name.to_owned();
        tool
    }

    fn command(name: &str) -> Tool {
        named(name).starts_programs()
    }

    /// Returns name and size of each pool, in the order of names, and the number of calls of all.
    fn sizes(tools: &[Tool]) -> (Vec<(String, usize)>, u32) {
        let (pools, slots) = pools(tools, LIMITS);
        let mut sizes: Vec<_> =
            pools.iter().map(|pool| (pool.name.clone(), pool.permits.available_permits())).collect();
        sizes.sort();
        let told = slots.by_pool.into_iter().map(|(pool, slots)| (pool, slots as usize));
        assert_eq!(told.collect::<Vec<_>>(), sizes, "it says what it can run");
        (sizes, slots.all)
    }

    fn size(name: &str, permits: usize) -> (String, usize) {
        (name.to_owned(), permits)
    }

    #[test]
    fn the_limit_of_a_tool_applies_to_its_pool() {
        let quick = Tool::echo();
        let slow = |name| named(name).pool("slow");
        for tools in
            [[quick.clone(), slow("a"), slow("b").concurrency(2)], [slow("b").concurrency(2), slow("a"), quick]]
        {
            assert_eq!(sizes(&tools), (vec![size("default", 64), size("slow", 2)], 66));
        }
    }

    #[test]
    fn command_tools_have_a_pool_of_their_own_with_their_limit() {
        let tools = [Tool::echo(), command("a"), command("b"), command("few").concurrency(1)];
        assert_eq!(sizes(&tools), (vec![size("commands", 4), size("default", 64), size("few", 1)], 68));
        let many = command("many").concurrency(50);
        assert_eq!(sizes(&[many]), (vec![size("many", 4)], 4));
        let mixed = command("mixed").pool("default");
        assert_eq!(sizes(&[mixed, Tool::echo()]), (vec![size("default", 64)], 64), "a mixed pool keeps its slots");
    }

    #[test]
    fn command_tools_of_all_pools_share_their_limit() {
        let tools = [command("a"), command("few").concurrency(3), command("mixed").pool("default"), Tool::echo()];
        let (pools, slots) = pools(&tools, LIMITS);
        assert_eq!(slots.all, 68);
        let pool = |name| pools.iter().find(|pool| pool.name == name).unwrap();
        let (commands, few, mixed) = (pool("commands"), pool("few"), pool("default"));
        let held = [
            commands.try_acquire("a", 0).ok().unwrap(),
            few.try_acquire("few", 0).ok().unwrap(),
            few.try_acquire("few", 0).ok().unwrap(),
            mixed.try_acquire("mixed", 0).ok().unwrap(),
        ];
        for (pool, tool) in [(commands, "a"), (few, "few"), (mixed, "mixed")] {
            assert_eq!(pool.try_acquire(tool, 0).err(), Some(LimitReached::Tool), "{tool}");
        }
        assert!(mixed.try_acquire("echo", 0).is_ok(), "tools that start no programs do not wait for those that do");
        drop(held);
        assert!(commands.try_acquire("a", 0).is_ok());
    }

    #[test]
    fn large_arguments_share_a_memory() {
        let (pools, _) = pools(&[Tool::echo(), named("slow").pool("slow")], LIMITS);
        let [one, other] = &pools[..] else { panic!("two pools") };
        let large: Vec<_> = (0..8).map(|_| one.try_acquire("echo", 16 << 20).ok().unwrap()).collect();
        assert_eq!(other.try_acquire("slow", 16 << 20).err(), Some(LimitReached::Memory));
        assert!(other.try_acquire("slow", 1024).is_ok(), "small ones need none of it");
        drop(large);
        assert!(other.try_acquire("slow", u32::MAX).is_ok(), "even the largest runs, alone");
    }
}
