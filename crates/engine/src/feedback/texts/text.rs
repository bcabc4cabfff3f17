//! One text.

/// One text.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Its name.
    pub key: &'static str,
    /// In English, with placeholders such as `{tool}`.
    pub en: &'static str,
    /// The same in Chinese.
    pub zh: &'static str,
}
