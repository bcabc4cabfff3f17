DROP TRIGGER ended_calls_never_change ON calls;
CREATE TRIGGER ended_calls_never_change BEFORE UPDATE ON calls FOR EACH ROW
    WHEN (OLD.wake_at IS NULL) EXECUTE FUNCTION refuse_change_of_ended_call();
