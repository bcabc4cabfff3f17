DROP TABLE webhook_lead, untold_ends, webhook_events, webhooks;
