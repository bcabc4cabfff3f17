//! What is erased.

/// A conversation, or everything of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The tenant.
    pub tenant: String,
    /// The conversation; `None`: everything of the tenant.
    pub conversation: Option<String>,
}
