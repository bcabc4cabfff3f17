-- What ended since a time, for the feed of a tenant.
--
-- An installation without tenants pays nothing: for the tenant default, calls_finished (all ends by their time) does.
CREATE INDEX calls_tenant_finished ON calls (tenant, finished_at) WHERE finished_at IS NOT NULL AND tenant <> 'default';
CREATE INDEX tasks_tenant_finished ON tasks (tenant, finished_at) WHERE finished_at IS NOT NULL;
