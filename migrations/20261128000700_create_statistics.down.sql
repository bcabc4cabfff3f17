DROP TABLE stats_progress, model_day_stats, pointer_stats, model_stats, attempt_stats, call_stats;
