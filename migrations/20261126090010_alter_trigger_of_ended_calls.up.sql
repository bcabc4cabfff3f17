-- A trigger before an update locks each row first, in a write of its own; one after it only reads the row that was there. Both refuse
-- the statement.
DROP TRIGGER ended_calls_never_change ON calls;
CREATE TRIGGER ended_calls_never_change AFTER UPDATE ON calls FOR EACH ROW
    WHEN (OLD.wake_at IS NULL) EXECUTE FUNCTION refuse_change_of_ended_call();
