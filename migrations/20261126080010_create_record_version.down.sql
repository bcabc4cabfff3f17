DROP TABLE record_version;
