-- The number of a step has one name: that of notices and of the wire.
ALTER TABLE task_steps RENAME COLUMN n TO step;
