DROP TABLE webhook_progress;
DROP TABLE webhook_events;
DROP TABLE webhooks;
