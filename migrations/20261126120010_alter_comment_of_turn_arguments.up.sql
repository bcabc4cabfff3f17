-- The arguments of a model's turn refer to messages; the comment of this view still said otherwise.
COMMENT ON COLUMN calls_of_tasks.arguments IS 'As the tool gets them. Of a model''s turn what refers to the messages that it saw.';
