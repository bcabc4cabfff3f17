DROP VIEW calls_of_tasks, attempt_history, call_history;
DROP TABLE late_reports, task_calls, redriven_calls, call_keys, attempts, calls;
DROP FUNCTION refuse_change_of_ended_call();
