-- The tasks that cannot be written, because their conversation, or everything of their tenant, is being erased.
SELECT i.n AS "n!", e.conversation IS NULL AS "whole_tenant!"
FROM UNNEST($1::int[], $2::text[], $3::text[]) AS i (n, tenant, conversation)
CROSS JOIN LATERAL (
    SELECT conversation FROM tombstones
    WHERE tenant = i.tenant AND erased_at IS NULL AND holds_starts
        AND (conversation IS NULL OR conversation = i.conversation)
    ORDER BY conversation NULLS FIRST
    LIMIT 1
) e
