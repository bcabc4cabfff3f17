-- Nothing to do: workers register again, and get consumers then.
SELECT 1;
