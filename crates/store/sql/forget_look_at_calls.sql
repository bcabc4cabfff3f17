-- The next $5 calls behind $3, of those that name the conversation or of all: which of them are the tenant's, and of what was
-- submitted before $4. That are all calls but those of tasks that were submitted later, bare calls that were, and redrives of such
-- bare calls. A task that runs at that time may make calls until it is cancelled.
SELECT
    c.id AS "id!",
    c.tenant = $1 AND (c.submitted_at <= $4 OR CASE
        WHEN c.task_id IS NOT NULL THEN
            (SELECT t.id FROM tasks t WHERE t.id = c.task_id AND t.submitted_at > $4) IS NULL
        WHEN c.redrive_of IS NOT NULL THEN
            (SELECT o.id FROM calls o
             WHERE o.id = c.redrive_of AND o.submitted_at > $4 AND o.redrive_of IS NULL AND o.task_id IS NULL) IS NULL
        ELSE false END) AS "is_of_scope!",
    c.wake_at IS NOT NULL AS "open!"
FROM calls c
WHERE ($2::text IS NULL OR c.conversation = $2) AND c.id > $3
ORDER BY c.id
LIMIT $5
