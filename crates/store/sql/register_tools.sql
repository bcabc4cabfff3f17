-- Tools as a worker registered them; the last registration of a tool counts. Returns those that are new or changed.
INSERT INTO tools AS t (name, spec, registered_by)
SELECT name, spec::json, $3 FROM UNNEST($1::text[], $2::text[]) AS i (name, spec) ORDER BY name
ON CONFLICT (name) DO UPDATE
SET spec = EXCLUDED.spec, registered_by = EXCLUDED.registered_by, registered_at = clock_timestamp()
WHERE t.spec::text <> EXCLUDED.spec::text
RETURNING name
