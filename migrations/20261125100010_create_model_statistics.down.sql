DROP TABLE pointer_stats;
DROP TABLE model_stats;
