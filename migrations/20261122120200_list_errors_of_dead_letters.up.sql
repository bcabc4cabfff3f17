-- One row for each rejected message, with a list of its errors. Before, a batch was kept once for each bad entry, with its
-- whole payload each time: a message of 1 MB could become a row of 1 MB a thousand times, in one statement.
--
-- `code` and `message` stay: they are the first error's. Rows of before have no list, and one error.

ALTER TABLE dead_letters
    ADD COLUMN error_count int NOT NULL DEFAULT 1 CHECK (error_count > 0),
    ADD COLUMN errors json;

COMMENT ON COLUMN dead_letters.error_count IS 'How many entries of the message were rejected; 1 if it could not be read at all.';
COMMENT ON COLUMN dead_letters.errors IS
    'The first 100 errors: position of the entry in its batch from 0, code, message. Empty in rows of older versions.';
