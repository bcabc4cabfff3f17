-- What is validated stays so.
SELECT 1;
