DROP VIEW attempt_history, call_history;
DROP TABLE retry_budgets, workers, tools, dead_letters, late_reports, attempts, calls;
DROP FUNCTION refuse_change_of_ended_call();
