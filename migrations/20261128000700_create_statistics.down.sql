DROP TABLE uncounted_calls, stats;
