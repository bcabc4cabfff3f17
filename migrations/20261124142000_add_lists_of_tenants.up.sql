-- Lists of the calls and tasks of a tenant, newest first, for whoever has no other filter. Each index costs every submission,
-- so the calls of tenant `default`, which is the only one of most installations, are not in theirs: they are found along the
-- primary key.
CREATE INDEX calls_tenant ON calls (tenant, id) WHERE tenant <> 'default';
CREATE INDEX tasks_tenant ON tasks (tenant, id);
