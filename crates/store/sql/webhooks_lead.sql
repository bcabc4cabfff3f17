-- Takes the lead for a while, or keeps it; no row if another dispatcher has it.
UPDATE webhook_progress
SET leader = $1, leads_until = clock_timestamp() + $2::bigint * interval '1 ms'
WHERE leader = $1 OR leads_until < clock_timestamp() OR leads_until > clock_timestamp() + $2::bigint * interval '2 ms'
RETURNING
    followed_until, clock_timestamp() AS "now!",
    (SELECT min(since) FROM webhooks WHERE state = 'active') AS first_since
