-- The tasks of a conversation run in the order of their submission by the database's clock. Their ids are made by
-- dispatchers, whose clocks may differ by minutes, so an id decides only between tasks of one submission.
DROP INDEX tasks_waiting;
CREATE INDEX tasks_waiting ON tasks (tenant, conversation, submitted_at, id) WHERE state = 'waiting';

-- What a model turn needs of the older part of a conversation without walking through it: the last system message and the
-- user's newest one. There are few of both among the messages.
CREATE INDEX messages_spoken ON messages (tenant, conversation, role, seq) WHERE role IN ('system', 'user');
