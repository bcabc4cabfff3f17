ALTER TABLE task_steps RENAME COLUMN step TO n;
