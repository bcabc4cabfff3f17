ALTER TABLE stats_progress DROP COLUMN models_since;
DROP TABLE pointer_stats;
DROP TABLE model_stats;
