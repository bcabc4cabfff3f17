//! What runs a tool: native Rust, HTTP, command.
