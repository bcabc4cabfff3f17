-- What a model saw is kept once: a turn refers to the messages of its conversation, and to the tools that its task offered.
CREATE TABLE turn_tools (
    task_id uuid NOT NULL,
    hash    text NOT NULL,
    tools   json NOT NULL,
    PRIMARY KEY (task_id, hash)
);

COMMENT ON TABLE turn_tools IS 'The tools that models were offered in turns of a task.';
COMMENT ON COLUMN turn_tools.task_id IS 'The task.';
COMMENT ON COLUMN turn_tools.hash IS 'SHA-256 of the tools; the arguments of model turns name it.';
COMMENT ON COLUMN turn_tools.tools IS 'The tools, as they were offered.';
COMMENT ON COLUMN call_history.arguments IS 'As the tool gets them: as sent, except for the repairs. Of a model''s turn what refers to the messages that it saw.';
