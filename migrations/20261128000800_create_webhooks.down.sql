DROP TABLE webhook_progress, webhook_events, webhooks;
