//! What a target is.

/// A decoder. It returns true if it read the input, false if it refused it; a panic is a finding.
pub type Decoder = Box<dyn FnMut(&[u8]) -> bool>;

/// A decoder with the documents that are damaged for it.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name in reports.
    pub name: &'static str,
    /// Its share of the inputs. What opens files or builds clients gets few.
    pub weight: usize,
    /// Good documents, and damaged ones that are worth damaging further.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Makes a decoder, for one thread.
    pub decoder: fn() -> Decoder,
}

/// Documents that are texts.
pub(super) fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
