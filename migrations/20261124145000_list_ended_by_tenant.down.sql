DROP INDEX tasks_tenant_finished;
DROP INDEX calls_tenant_finished;
