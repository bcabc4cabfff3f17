ALTER TABLE stats_progress DROP COLUMN days_until;
DROP TABLE model_day_stats;
