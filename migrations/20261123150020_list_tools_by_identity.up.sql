-- How many tools an identity serves, and how many of it wait, is bounded.
CREATE INDEX tool_identities_identity ON tool_identities (identity);
CREATE INDEX pending_tools_identity ON pending_tools (identity);
