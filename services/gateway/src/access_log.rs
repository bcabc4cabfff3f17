//! The access log: a line for each request, if the settings want it.

use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use redial_proto::{Tenant, TokenId};

use crate::identity::Identity;

/// Who sent a request, once that is known. It is an extension of the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asker(Arc<OnceLock<(Tenant, Option<TokenId>)>>);

impl Asker {
    pub(crate) fn set(&self, who: &Identity) {
        let _ = self.0.set((who.tenant.clone(), who.token.clone()));
    }
}

/// The line of a request. It is written when this is dropped, so that a request whose client went away has one, too.
pub(crate) struct AccessLine {
    pub(crate) is_wanted: bool,
    pub(crate) request_id: String,
    pub(crate) method: String,
    pub(crate) route: Option<String>,
    pub(crate) asker: Asker,
    pub(crate) began: Instant,
    /// Set once the answer has begun.
    pub(crate) status: Option<u16>,
}

impl Drop for AccessLine {
    fn drop(&mut self) {
        if !self.is_wanted {
            return;
        }
        let Self { request_id, method, route, asker, began, status, .. } = self;
        let (tenant, token) = asker.0.get().map(|(tenant, token)| (tenant.as_str(), token.as_ref())).unzip();
        let token = token.flatten().map(TokenId::as_str);
        let ms = began.elapsed().as_millis();
        if let Some(status) = status {
            tracing::info!(request_id, tenant, token, method, route, status, ms, "Answered a request");
        } else {
            tracing::info!(request_id, tenant, token, method, route, ms, "A request ended without an answer");
        }
    }
}
