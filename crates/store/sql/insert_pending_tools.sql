-- What a worker of identity $2 registered and may not serve yet: the last specification of each tool.
INSERT INTO pending_tools AS p (tool, identity, spec, reasons, worker)
SELECT i.tool, $2, i.spec::json, ARRAY(SELECT json_array_elements_text(i.reasons::json)), $3
FROM UNNEST($1::text[], $4::text[], $5::text[]) AS i (tool, spec, reasons)
ORDER BY i.tool
ON CONFLICT (tool, identity) DO UPDATE
SET spec = EXCLUDED.spec, reasons = EXCLUDED.reasons, worker = EXCLUDED.worker,
    since = CASE WHEN p.spec::text = EXCLUDED.spec::text THEN p.since ELSE EXCLUDED.since END
