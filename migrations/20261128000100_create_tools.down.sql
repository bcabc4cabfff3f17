DROP TABLE retry_budgets, workers, consumers, pending_tools, tool_identities, tools;
