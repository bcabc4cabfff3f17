-- Which programs may use this database. A migration that lets programs write what earlier ones cannot read raises `version`; one that takes
-- something away that earlier ones need (the contract step of an upgrade) raises `oldest_reader`, and from then on earlier
-- programs refuse to start instead of failing at some statement (docs/UPGRADING.md).
CREATE TABLE record_version (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL CHECK (version >= 1),
    oldest_reader integer NOT NULL CHECK (oldest_reader BETWEEN 1 AND version)
);

COMMENT ON TABLE record_version IS 'The version of the records: one row, which migrations change.';
COMMENT ON COLUMN record_version.one IS 'Always true: there is one row.';
COMMENT ON COLUMN record_version.version IS 'The newest version of records that the tables can hold.';
COMMENT ON COLUMN record_version.oldest_reader IS 'The oldest version of records whose programs may still use the tables.';

INSERT INTO record_version (version, oldest_reader) VALUES (1, 1);
