-- Gives events their deliveries, unless they have one, or what they are about is being erased.
UPDATE webhook_events e
SET delivery = i.delivery
FROM UNNEST($1::text[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[])
        AS i (tenant, webhook, subject, delivery, conversation),
    webhooks w
WHERE e.tenant = i.tenant AND e.webhook = i.webhook AND e.subject = i.subject AND e.delivery IS NULL
    AND w.tenant = i.tenant AND w.id = i.webhook AND w.state = 'active'
    AND NOT EXISTS (
        SELECT FROM tombstones t
        WHERE t.tenant = i.tenant AND t.erased_at IS NULL
            AND (t.conversation IS NULL OR t.conversation = i.conversation))
RETURNING e.delivery AS "delivery!"
