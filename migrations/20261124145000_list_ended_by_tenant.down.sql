DROP INDEX tasks_finished;
DROP INDEX calls_tenant_finished;
