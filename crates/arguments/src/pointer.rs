//! JSON pointers (RFC 6901).

/// `base` and one more key.
pub(crate) fn join(base: &str, key: &str) -> String {
    format!("{base}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The pointer without its last key.
pub(crate) fn up(pointer: &str) -> &str {
    pointer.rfind('/').map_or("", |end| &pointer[..end])
}
