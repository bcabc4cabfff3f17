//! JSON pointers (RFC 6901).

use std::borrow::Cow;

/// Adds one more key to `base`.
pub(crate) fn join(base: &str, key: &str) -> String {
    format!("{base}/{}", key.replace('~', "~0").replace('/', "~1"))
}

pub(crate) fn parent(pointer: &str) -> &str {
    pointer.rfind('/').map_or("", |end| &pointer[..end])
}

/// Returns keys and indices from the root to the location.
pub(crate) fn steps(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer
        .split('/')
        .skip(1)
        .map(|step| if step.contains('~') { step.replace("~1", "/").replace("~0", "~").into() } else { step.into() })
}
