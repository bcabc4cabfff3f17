DROP TABLE payloads;
