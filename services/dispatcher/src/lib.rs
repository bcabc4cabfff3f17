//! Accepts, decides, publishes, ingests, sweeps.
