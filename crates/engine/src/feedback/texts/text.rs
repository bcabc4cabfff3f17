//! One text.

#[derive(Clone, Copy, Debug)]
pub struct Text {
    pub key: &'static str,
    /// In English, with placeholders such as `{tool}`.
    pub en: &'static str,
    pub zh: &'static str,
}
