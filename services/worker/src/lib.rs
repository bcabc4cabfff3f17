//! Pulls, claims, runs, reports; the library for tool authors.
