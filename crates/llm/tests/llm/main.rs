//! What models are sent, and what is made of their answers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod http;
mod models;
mod react;
mod replies;
mod request;
mod requests;
mod script;
mod validators;

/// Reads the cases of a corpus: a text of a model, and how it is read.
fn cases(corpus: &'static str) -> impl Iterator<Item = (String, String)> {
    let marked = move |mark: &'static str| corpus.lines().filter_map(move |line| line.strip_prefix(mark));
    let whole = |line: &str| line.replace('⏎', "\n");
    marked("> ").zip(marked("=")).map(move |(text, wanted)| (whole(text), whole(wanted.trim_start())))
}
