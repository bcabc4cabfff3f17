DROP VIEW message_history, task_history;
DROP TABLE turn_tools, messages, task_steps, task_inbox, tasks;
DROP FUNCTION refuse_change_of_ended_task();
