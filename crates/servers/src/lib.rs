//! Private Postgres and NATS servers under supervision.
