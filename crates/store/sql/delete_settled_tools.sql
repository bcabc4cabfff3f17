-- What waited for identity $2 of tools that it registered as it may serve them, unless another live worker of it waits.
DELETE FROM pending_tools p
WHERE p.tool = ANY ($1) AND p.identity = $2 AND NOT EXISTS (
    SELECT FROM workers w
    WHERE p.tool = ANY (w.waiting) AND w.id <> $3 AND w.live_until > clock_timestamp()
        AND regexp_replace(w.id, '-[^-]*$', '') = $2
)
