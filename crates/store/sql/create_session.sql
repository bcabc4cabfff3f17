-- Signs a browser in with a token, unless the token has ended. Of the sessions of the token those go that have ended, and the oldest
-- ones beyond $4 - 1.
WITH gone AS (
    DELETE FROM sessions
    WHERE token = $2 AND (
        expires_at <= clock_timestamp()
        OR sha256 IN (SELECT s.sha256 FROM sessions s WHERE s.token = $2 ORDER BY s.created_at DESC OFFSET $4 - 1))
)
INSERT INTO sessions (sha256, token, expires_at)
SELECT $1, t.id, LEAST(t.expires_at, clock_timestamp() + make_interval(secs => $3))
FROM tokens t
WHERE t.id = $2 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())
-- The same id again is the same session: its reply was lost.
ON CONFLICT (sha256) DO UPDATE SET token = EXCLUDED.token
RETURNING expires_at
