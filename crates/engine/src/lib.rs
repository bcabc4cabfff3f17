//! What happens to a call: pure decisions, no clock, no I/O.
