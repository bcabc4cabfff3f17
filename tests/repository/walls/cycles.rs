//! Cycles among the modules of a crate.
//!
//! The children of one module and that module's own items form a graph: a vertex for each child with everything below
//! it, and one for the items of the parent itself. An import is an arrow in the graph of the deepest module that
//! contains both of its ends:
//!
//! - from one child's subtree into another's: an arrow between the two children;
//! - from a child's subtree to an item that the parent itself defines: an arrow from the child to the parent;
//! - from the parent's own code into a child: an arrow from the parent to the child. A `mod` line is not an arrow, and neither is
//!   a re-export whose item the parent's own code does not name.
//!
//! What a path means is found through re-exports: `crate::Item` is an arrow to the module that defines the item.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt::Write as _,
};

use super::modules::{Import, ModulePath, Modules};

/// A graph's arrows, each with the places that draw it.
type Graph = BTreeMap<ModulePath, BTreeMap<ModulePath, Vec<String>>>;

/// Every shortest cycle, as a line for each arrow.
pub(crate) fn cycles(modules: &Modules) -> Vec<String> {
    let mut graphs: BTreeMap<ModulePath, Graph> = BTreeMap::new();
    for Import { from, to, at } in modules.imports() {
        let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        let vertex = |path: &ModulePath| path[..path.len().min(common + 1)].to_vec();
        let graph = graphs.entry(from[..common].to_vec()).or_default();
        graph.entry(vertex(&from)).or_default().entry(vertex(&to)).or_default().push(at);
    }
    graphs.values().flat_map(|graph| in_graph(graph).into_iter().map(|cycle| shown(graph, &cycle))).collect()
}

/// The shortest cycle through each arrow, each cycle once.
fn in_graph(graph: &Graph) -> BTreeSet<Vec<ModulePath>> {
    let mut cycles = BTreeSet::new();
    for (from, arrows) in graph {
        for to in arrows.keys() {
            if let Some(mut cycle) = way(graph, to, from) {
                let first = (0..cycle.len()).min_by_key(|at| &cycle[*at]).unwrap_or(0);
                cycle.rotate_left(first);
                cycles.insert(cycle);
            }
        }
    }
    cycles
}

/// The shortest way from one vertex to another, both included.
fn way(graph: &Graph, from: &ModulePath, to: &ModulePath) -> Option<Vec<ModulePath>> {
    let (mut came_from, mut open) = (BTreeMap::from([(from, None)]), VecDeque::from([from]));
    while let Some(vertex) = open.pop_front() {
        if vertex == to {
            let back = std::iter::successors(Some(vertex), |vertex| came_from[*vertex]);
            let mut way: Vec<ModulePath> = back.cloned().collect();
            way.reverse();
            return Some(way);
        }
        for next in graph.get(vertex).into_iter().flat_map(BTreeMap::keys) {
            came_from.entry(next).or_insert_with(|| {
                open.push_back(next);
                Some(vertex)
            });
        }
    }
    None
}

fn shown(graph: &Graph, cycle: &[ModulePath]) -> String {
    let name = |path: &ModulePath| if path.is_empty() { "crate".to_owned() } else { path.join("::") };
    let mut text = String::new();
    for (from, to) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
        let places = &graph[from][to];
        let more = if places.len() > 1 { format!(" and {} more", places.len() - 1) } else { String::new() };
        let separator = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{separator}{} → {} ({}{more})", name(from), name(to), places[0]);
    }
    text
}
