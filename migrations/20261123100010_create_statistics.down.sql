DROP TABLE stats_progress;
DROP TABLE attempt_stats;
DROP TABLE call_stats;
DROP INDEX calls_finished;
