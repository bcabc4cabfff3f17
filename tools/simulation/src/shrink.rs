//! Reduces a plan that violates an invariant to the moves that are needed for that.

use crate::{Invariant, Mutation, Plan, world::World};

/// The smallest plan found that violates the same invariant: fewer moves, fewer calls and processes, simpler moves.
#[must_use]
pub fn shrink(plan: &Plan, mutation: Option<Mutation>, invariant: Invariant) -> Plan {
    let mut world = World::new();
    let violates = |world: &mut World, plan: &Plan| {
        plan.setup.workers > 0
            && plan.setup.calls + plan.setup.tasks > 0
            && world.run(plan, mutation).is_err_and(|violation| violation.invariant == invariant)
    };
    let mut best = plan.clone();
    loop {
        let before = best.clone();
        without_moves(&mut best, |plan| violates(&mut world, plan));
        smaller_setup(&mut best, |plan| violates(&mut world, plan));
        simpler_moves(&mut best, |plan| violates(&mut world, plan));
        if best == before {
            return best;
        }
    }
}

/// Removes runs of consecutive moves: half of them, a quarter, and so on down to one.
fn without_moves(best: &mut Plan, mut violates: impl FnMut(&Plan) -> bool) {
    let mut length = best.moves.len() / 2;
    while length > 0 {
        let mut start = 0;
        while start < best.moves.len() {
            let mut tried = best.clone();
            tried.moves.drain(start..(start + length).min(best.moves.len()));
            if violates(&tried) {
                *best = tried;
            } else {
                start += length;
            }
        }
        length /= 2;
    }
}

fn smaller_setup(best: &mut Plan, mut violates: impl FnMut(&Plan) -> bool) {
    let smaller: [fn(&mut Plan) -> &mut u8; 4] = [
        |plan| &mut plan.setup.tasks,
        |plan| &mut plan.setup.calls,
        |plan| &mut plan.setup.workers,
        |plan| &mut plan.setup.dispatchers,
    ];
    for (least, part) in [0, 0, 1, 1].into_iter().zip(smaller) {
        loop {
            let mut tried = best.clone();
            let number = part(&mut tried);
            if *number <= least {
                break;
            }
            *number -= 1;
            if !violates(&tried) {
                break;
            }
            *best = tried;
        }
    }
}

fn simpler_moves(best: &mut Plan, mut violates: impl FnMut(&Plan) -> bool) {
    const MASKS: [u32; 4] = [0, 0x0000_00ff, 0x0000_ffff, 0x00ff_ffff];
    for n in 0..best.moves.len() {
        for mask in MASKS {
            let mut tried = best.clone();
            tried.moves[n].pick &= mask;
            if tried.moves[n] == best.moves[n] {
                break;
            }
            if violates(&tried) {
                *best = tried;
                break;
            }
        }
    }
}
