//! A whole Redial on a nats-server with the permissions that `redial nats-config` writes, and what hostile clients and workers
//! try there with the credentials of each role. `REDIAL_NATS_SERVER` names another nats-server than the project's.

mod floods;
mod mistakes;
mod world;
