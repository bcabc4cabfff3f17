-- Tools as a worker of identity $4 registered them, which may serve them. Returns the names of those that changed.
WITH accepted AS (
    SELECT name, spec FROM UNNEST($1::text[], $2::text[]) AS i (name, spec)
), pinned AS (
    INSERT INTO tool_identities (tool, identity) SELECT name, $4 FROM accepted ORDER BY name
    ON CONFLICT (tool, identity) DO NOTHING
    RETURNING tool
), changed AS (
    UPDATE tools t
    SET spec = i.spec::json, registered_by = $3, registered_at = clock_timestamp()
    FROM accepted i
    WHERE t.name = i.name AND t.spec::text <> i.spec
    RETURNING t.name
)
SELECT name AS "name!" FROM changed UNION SELECT tool FROM pinned
