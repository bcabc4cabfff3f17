//! Real servers and scripted outside parties for tests.
