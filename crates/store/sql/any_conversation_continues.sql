-- Whether a task of one of these conversations is on record.
SELECT EXISTS (
    SELECT FROM UNNEST($1::text[], $2::text[]) AS i (tenant, conversation)
    JOIN tasks t ON t.tenant = ANY (ARRAY[i.tenant]) AND t.conversation = ANY (ARRAY[i.conversation])
) AS "continues!"
