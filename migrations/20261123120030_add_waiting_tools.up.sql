-- Tools that the worker has and may not serve yet; `tools` holds those that it serves.
ALTER TABLE workers ADD COLUMN waiting text[] NOT NULL DEFAULT '{}';
-- Where it runs, as it says: its id starts with its identity, which workers on many hosts share.
ALTER TABLE workers ADD COLUMN host text;
