-- Adds the days from $1 until $2 up from their hours.
INSERT INTO model_day_stats
SELECT
    date_trunc('day', hour, 'UTC'), tenant, agent, model, tool, sum(calls), sum(right_at_once), sum(repaired), sum(wrong),
    sum(corrected_1), sum(corrected_2), sum(corrected_3), sum(answers), sum(input_tokens), sum(output_tokens), sum(cost_micros),
    sum(tokens_unknown), sum(cost_unknown)
FROM model_stats
WHERE hour >= $1 AND hour < $2
GROUP BY 1, 2, 3, 4, 5
