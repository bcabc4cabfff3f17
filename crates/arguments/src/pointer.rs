//! JSON pointers (RFC 6901).

use std::borrow::Cow;

/// `base` with one more key.
pub(crate) fn join(base: &str, key: &str) -> String {
    format!("{base}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The pointer without its last key.
pub(crate) fn parent(pointer: &str) -> &str {
    pointer.rfind('/').map_or("", |end| &pointer[..end])
}

/// Keys and indices from the root to the location.
pub(crate) fn steps(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer
        .split('/')
        .skip(1)
        .map(|step| if step.contains('~') { step.replace("~1", "/").replace("~0", "~").into() } else { step.into() })
}
