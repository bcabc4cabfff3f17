-- A token with whether it is the one that was asked for: of the same content, which its validity is part of.
SELECT
    created_at, expires_at,
    (tenant = $2 AND user_name = $3 AND roles = $4 AND sha256 = $5 AND label = $6 AND created_by = $7
        AND expires_at IS NOT DISTINCT FROM LEAST(created_at + $8::bigint * interval '1 second', $10::timestamptz)
        AND parent IS NOT DISTINCT FROM $9) AS "is_same!"
FROM tokens
WHERE id = $1
