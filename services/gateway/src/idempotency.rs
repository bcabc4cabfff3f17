//! Keys of submissions: the header `Idempotency-Key`, which means the same as `key` in the body.

use axum::http::{HeaderMap, HeaderName};
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

use crate::{identity::Identity, problem::Problem};

const IDEMPOTENCY_KEY: &str = "idempotency-key";
pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Returns the key of the header and of the body, which must not differ.
pub(crate) fn key(headers: &HeaderMap, in_body: Option<String>) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(in_body) };
    let value = value.to_str().map_err(|_| Problem::invalid("Idempotency-Key: only ASCII text is allowed"))?;
    // The draft of the header has it in quotes, most clients do not.
    let value = value.trim().trim_matches('"').to_owned();
    match in_body {
        Some(key) if key != value => {
            Err(Problem::invalid("the key in the body and the header Idempotency-Key differ; allowed: one of them"))
        }
        _ => Ok(Some(value)),
    }
}

/// Derives the id of a thing of this kind from a key of the tenant.
pub(crate) fn id_of(who: &Identity, kind: &str, key: &str) -> Uuid {
    let digest = Sha256::digest(format!("{}\n{kind}\n{key}", who.tenant));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Fails if a header is to be the key of several calls.
pub(crate) fn no_common_key(headers: &HeaderMap) -> Result<(), Problem> {
    if !headers.contains_key(IDEMPOTENCY_KEY) {
        return Ok(());
    }
    Err(Problem::invalid("Idempotency-Key is set for several calls; allowed: a key in each of them"))
}
