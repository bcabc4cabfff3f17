//! Arguments of a call against the schema of its tool.
