-- Takes the lead for a while, or keeps it; no row if another dispatcher has it. The answer is whether a webhook is active.
UPDATE webhook_lead
SET leader = $1, leads_until = clock_timestamp() + $2::bigint * interval '1 ms'
WHERE leader = $1 OR leads_until < clock_timestamp() OR leads_until > clock_timestamp() + $2::bigint * interval '2 ms'
RETURNING EXISTS (SELECT FROM webhooks WHERE state = 'active') AS "is_any_active!"
