-- Questions that people ask the record, and that no index answered: the calls of a worker, and the calls that ended in a
-- rare state, such as `unknown`.
--
-- Neither index holds a column that a claim changes, so claims are still HOT updates:
-- * `worker` of a call changes with each claim; an attempt is written once, when it ends. Running attempts are found
--   through calls_wake, because there are never more of them than a worker has slots.
-- * `state` changes with each claim, too. `class` is set when a call ends without success, which few calls do, and every
--   state that is rare is among them.
CREATE INDEX attempts_worker ON attempts (worker, call_id);
CREATE INDEX calls_unsuccessful ON calls (id) WHERE class IS NOT NULL;
