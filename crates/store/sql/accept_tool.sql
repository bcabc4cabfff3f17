-- Identity $2 may serve the tool from now on, as it registered it. The other identities may go on with what they serve: a restart of
-- their workers does not wait because this one has changed the tool.
WITH accepted AS (
    DELETE FROM pending_tools WHERE tool = $1 AND identity = $2 RETURNING spec, reasons, worker
), pinned AS (
    INSERT INTO tool_identities (tool, identity, accepted_spec) SELECT $1, $2, spec FROM accepted
    ON CONFLICT (tool, identity) DO UPDATE
    SET accepted_spec = EXCLUDED.accepted_spec, accepted_at = clock_timestamp()
), others AS (
    UPDATE tool_identities i
    SET accepted_spec = t.spec
    FROM accepted, tools t
    WHERE i.tool = $1 AND i.identity <> $2 AND i.accepted_spec IS NULL AND t.name = $1
), changed AS (
    UPDATE tools t
    SET spec = a.spec, registered_by = a.worker, registered_at = clock_timestamp()
    FROM accepted a
    WHERE t.name = $1
)
SELECT reasons FROM accepted
