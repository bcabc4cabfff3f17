DROP INDEX pending_tools_identity;
DROP INDEX tool_identities_identity;
