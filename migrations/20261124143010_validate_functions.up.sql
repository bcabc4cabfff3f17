-- Reads all calls while others go on changing them.
ALTER TABLE calls VALIDATE CONSTRAINT calls_state_check;
ALTER TABLE calls VALIDATE CONSTRAINT calls_check;
