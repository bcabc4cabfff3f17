//! What all pages share.

use std::sync::Arc;

use axum::Router;

#[derive(Clone)]
pub(crate) struct Console {
    pub(crate) api: Arc<Router>,
}
