DROP TABLE uncounted_calls, model_day_stats, pointer_stats, model_stats, attempt_stats, call_stats;
