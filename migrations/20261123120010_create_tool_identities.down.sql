DROP TABLE tool_identities;
