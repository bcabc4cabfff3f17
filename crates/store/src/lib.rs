//! Redial's tables in Postgres; the only crate that speaks SQL.
