-- What all dispatchers share about the streams on NATS.
--
-- Why here: a stream that was wiped is created again by whichever dispatcher notices it first, also by one that was started
-- without the setting.
CREATE TABLE stream_settings (
    only_row boolean  PRIMARY KEY DEFAULT true CHECK (only_row),
    replicas smallint NOT NULL CHECK (replicas BETWEEN 1 AND 5)
);

COMMENT ON TABLE stream_settings IS 'One row, once a dispatcher was started with the setting: how streams on NATS are created.';
COMMENT ON COLUMN stream_settings.replicas IS 'Servers of the NATS cluster that keep each stream.';
