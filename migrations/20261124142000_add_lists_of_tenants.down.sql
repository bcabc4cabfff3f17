DROP INDEX tasks_tenant;
DROP INDEX calls_tenant;
