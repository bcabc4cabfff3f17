//! What is removed from a text, and in which order.

use std::sync::LazyLock;

use super::{hosts, paths, rule::Rule, secrets};

/// Every rule, in the order in which they are applied: secrets first, so that nothing breaks them into pieces.
pub(super) fn all() -> impl Iterator<Item = &'static Rule> {
    static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let mut rules = secrets::rules();
        rules.extend(hosts::rules());
        rules.extend(paths::rules());
        rules.push(secrets::random());
        rules
    });
    RULES.iter()
}
