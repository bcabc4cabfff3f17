DROP TABLE dead_letters, payloads, stream_settings, job_stream;
