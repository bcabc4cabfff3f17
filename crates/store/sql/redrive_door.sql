-- By which way in a redrive was asked for: of the action that put it on record, if that is still there. A repetition of the
-- request changed nothing, and has no effect.
SELECT door FROM actions
WHERE tenant = $1 AND user_name = $2 AND verb = 'redrives.create' AND effective AND targets = ARRAY[$3::text]
ORDER BY id
LIMIT 1
