DROP TABLE pending_tools;
