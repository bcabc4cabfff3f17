//! The tools that a request offers, under the names that a model may write.

use std::collections::{HashMap, HashSet};

use redial_proto::TurnRequest;

use crate::names::Names;

pub(crate) struct Offers {
    names: Names,
    offered: HashSet<String>,
    /// How many offered tools have this folded name.
    folded: HashMap<String, usize>,
}

impl Offers {
    pub(crate) fn of(request: &TurnRequest) -> Self {
        let mut folded = HashMap::new();
        for tool in &request.tools {
            *folded.entry(fold(&tool.name)).or_default() += 1;
        }
        let offered = request.tools.iter().map(|tool| tool.name.clone()).collect();
        Self { names: Names::of(request), offered, folded }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.offered.is_empty()
    }

    /// Returns the tool's own name for the name that the model wrote; an unknown name stays unchanged.
    pub(crate) fn own(&self, written: &str) -> String {
        self.names.own(written)
    }

    /// True if the name means exactly one offered tool. Case and separators do not matter: they are corrected, and the
    /// correction is recorded, where the call is checked.
    pub(crate) fn has(&self, written: &str) -> bool {
        let own = self.own(written);
        self.offered.contains(&own) || self.folded.get(&fold(&own)) == Some(&1)
    }
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).flat_map(char::to_lowercase).collect()
}
