-- Sums of models over some hours, or with $11 over whole days, of a tenant or of all: what is neither grouped by nor named is left
-- empty.
SELECT
    tenant AS "tenant!",
    CASE WHEN $4::boolean THEN hour ELSE $1 END AS "hour!",
    CASE WHEN $5::boolean THEN agent ELSE '' END AS "agent!",
    CASE WHEN $6::boolean THEN model ELSE '' END AS "model!",
    CASE WHEN $7::boolean THEN tool ELSE '' END AS "tool!",
    sum(calls)::bigint AS "calls!", sum(right_at_once)::bigint AS "right_at_once!", sum(repaired)::bigint AS "repaired!",
    sum(wrong)::bigint AS "wrong!", sum(corrected_1)::bigint AS "corrected_1!", sum(corrected_2)::bigint AS "corrected_2!",
    sum(corrected_3)::bigint AS "corrected_3!", sum(answers)::bigint AS "answers!", sum(input_tokens)::bigint AS "input_tokens!",
    sum(output_tokens)::bigint AS "output_tokens!", sum(cost_micros)::bigint AS "cost_micros!",
    sum(tokens_unknown)::bigint AS "tokens_unknown!", sum(cost_unknown)::bigint AS "cost_unknown!"
FROM (
    SELECT * FROM model_stats WHERE NOT $11::boolean
    UNION ALL
    SELECT * FROM model_day_stats WHERE $11::boolean
) AS stats
WHERE hour >= $1 AND hour < $2 AND ($3::text IS NULL OR tenant = $3)
    AND ($8::text IS NULL OR agent = $8) AND ($9::text IS NULL OR model = $9) AND ($10::text IS NULL OR tool = $10)
GROUP BY 1, 2, 3, 4, 5
