DROP TABLE stream_settings;
