//! The JetStream API: JSON requests on `$JS.API.>`, written here so that only fields known to nats-server 2.9 are sent.

use async_nats::jetstream::response::Response;
use serde::de::DeserializeOwned;

use crate::{Queue, QueueError, connect::ANSWER};

/// "stream not found", "consumer not found" and "no message found".
const NOT_FOUND: [u64; 3] = [10059, 10014, 10037];
/// "insufficient storage resources available" and "insufficient resources".
const NO_ROOM: [u64; 2] = [10047, 10023];
/// "no suitable peers for placement" and "replicas > 1 not supported in non-clustered mode".
const TOO_FEW_SERVERS: [u64; 2] = [10005, 10074];

impl Queue {
    /// Sends one request; `Missing` if the stream or consumer does not exist.
    pub(crate) async fn api<T: DeserializeOwned>(&self, name: &str, body: Vec<u8>) -> Result<T, QueueError> {
        let subject = format!("$JS.API.{name}");
        let reply = self.send_request(&subject, body.into(), ANSWER).await.map_err(|error| match error {
            QueueError::NoResponders { .. } => QueueError::nats(name, "JetStream is not enabled on this NATS server"),
            other => other,
        })?;
        match serde_json::from_slice(&reply.payload) {
            Ok(Response::Ok(answer)) => Ok(answer),
            Ok(Response::Err { error }) if NOT_FOUND.contains(&error.error_code().0) => {
                Err(QueueError::Missing { name: name.to_owned() })
            }
            Ok(Response::Err { error }) if NO_ROOM.contains(&error.error_code().0) => {
                Err(QueueError::Full { subject, reason: error.to_string() })
            }
            Ok(Response::Err { error }) if TOO_FEW_SERVERS.contains(&error.error_code().0) => {
                Err(QueueError::TooFewServers { name: name.to_owned(), reason: error.to_string() })
            }
            Ok(Response::Err { error }) => Err(QueueError::nats(name, &error)),
            Err(error) => Err(QueueError::Decode { subject, reason: error.to_string() }),
        }
    }
}
