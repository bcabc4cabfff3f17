COMMENT ON COLUMN calls_of_tasks.arguments IS 'As the tool gets them.';
