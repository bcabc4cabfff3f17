-- Several gateways do this at once: a row that another one writes is left out.
UPDATE tokens SET last_used_at = clock_timestamp()
WHERE id = ANY (ARRAY(SELECT id FROM tokens WHERE id = ANY ($1) FOR UPDATE SKIP LOCKED))
