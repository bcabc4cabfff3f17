//! The statements that answer people's questions, by name, for whoever wants to see their plans.

/// Each statement of the history with its name. Their parameters are described where they are used.
pub const STATEMENTS: [(&str, &str); 9] = [
    ("history", include_str!("../../sql/history.sql")),
    ("history_lines", include_str!("../../sql/history_lines.sql")),
    ("calls_of_worker", include_str!("../../sql/calls_of_worker.sql")),
    ("search", include_str!("../../sql/search.sql")),
    ("payloads", include_str!("../../sql/payloads.sql")),
    ("record_sizes", include_str!("../../sql/record_sizes.sql")),
    ("ids_between", include_str!("../../sql/ids_between.sql")),
    ("neighbours", include_str!("../../sql/neighbours.sql")),
    ("tasks", include_str!("../../sql/tasks.sql")),
];
