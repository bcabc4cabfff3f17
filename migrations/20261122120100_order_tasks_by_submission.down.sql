DROP INDEX messages_spoken;
DROP INDEX tasks_waiting;
CREATE INDEX tasks_waiting ON tasks (tenant, conversation, id) WHERE state = 'waiting';
