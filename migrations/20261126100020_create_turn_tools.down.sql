-- Turns that refer to messages cannot be read by earlier versions: end or delete their tasks first.
COMMENT ON COLUMN call_history.arguments IS 'As the tool gets them: as sent, except for the repairs.';
DROP TABLE turn_tools;
