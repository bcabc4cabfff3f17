-- The permissions of a pool's workers name at most 16 consumers, `pool` to `pool+16`. Workers of the others register again.
DELETE FROM workers w
WHERE EXISTS (
    SELECT FROM UNNEST(w.consumers) AS c (name)
    WHERE CASE WHEN name ~ '\+[0-9]{1,10}$' THEN substring(name FROM '\+([0-9]{1,10})$')::bigint > 16 ELSE false END
);
DELETE FROM consumers
WHERE CASE WHEN name ~ '\+[0-9]{1,10}$' THEN substring(name FROM '\+([0-9]{1,10})$')::bigint > 16 ELSE false END;
