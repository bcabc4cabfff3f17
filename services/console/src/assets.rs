//! The files that pages load: the style, the scripts, the icon. Their names hold a hash of their contents, so that browsers keep
//! them for as long as they like.

use std::sync::LazyLock;

use axum::{
    Router,
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use sha2::{Digest as _, Sha256};

use crate::console::Console;

struct Asset {
    name: String,
    media: &'static str,
    text: &'static str,
}

impl Asset {
    fn new(stem: &str, ending: &str, media: &'static str, text: &'static str) -> Self {
        let hash: String = Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Self { name: format!("{stem}-{hash}.{ending}"), media, text }
    }
}

static ASSETS: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    [
        Asset::new("console", "css", "text/css; charset=utf-8", include_str!("../assets/console.css")),
        Asset::new("console", "js", "text/javascript; charset=utf-8", include_str!("../assets/console.js")),
        Asset::new("mark", "svg", "image/svg+xml", include_str!("../assets/mark.svg")),
    ]
});

pub(crate) fn style() -> &'static str {
    &ASSETS[0].name
}

pub(crate) fn script() -> &'static str {
    &ASSETS[1].name
}

pub(crate) fn icon() -> &'static str {
    &ASSETS[2].name
}

pub(crate) fn router() -> Router<Console> {
    Router::new().route("/console/assets/{name}", get(asset))
}

async fn asset(Path(name): Path<String>) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let headers = [(header::CONTENT_TYPE, asset.media), (header::CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, asset.text).into_response()
}
