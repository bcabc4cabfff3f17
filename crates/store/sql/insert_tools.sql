-- New tools, with the identity that may serve them. Returns their names.
WITH new AS (
    INSERT INTO tools (name, spec, registered_by)
    SELECT name, spec::json, $3 FROM UNNEST($1::text[], $2::text[]) AS i (name, spec) ORDER BY name
    ON CONFLICT (name) DO NOTHING
    RETURNING name
)
INSERT INTO tool_identities (tool, identity) SELECT name, $4 FROM new RETURNING tool
