-- Questions that people ask the record, and that no index answered: the calls of a worker, and the calls that ended in a
-- rare state, such as `unknown`.
--
-- Neither index holds a column that a claim changes, so claims are still HOT updates:
-- * `worker` of a call changes with each claim; an attempt is written once, when it ends. Running attempts are found
--   through calls_wake, because there are never more of them than a worker has slots.
-- * `state` changes with each claim, too, and so does whether it is in a partial index. `ended_as` repeats it once a call
--   has ended without success; before that it is NULL, whatever happens to the call.
CREATE INDEX attempts_worker ON attempts (worker, call_id);
ALTER TABLE calls ADD COLUMN ended_as text
    GENERATED ALWAYS AS (CASE WHEN finished_at IS NOT NULL AND state <> 'succeeded' THEN state END) STORED;
CREATE INDEX calls_ended_as ON calls (ended_as, id) WHERE ended_as IS NOT NULL;
