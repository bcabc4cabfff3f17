//! The decoders, each as a function of bytes.

mod answers;
mod arguments;
mod files;
mod messages;

/// A decoder. It returns true if it read the input, false if it refused it; whatever else it does is a finding.
pub type Decoder = Box<dyn FnMut(&[u8]) -> bool>;

/// Something that reads from outside.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Its share of the inputs. What opens files or builds clients gets few.
    pub weight: usize,
    /// Good documents, and damaged ones that are worth damaging further.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Makes a decoder, for one thread.
    pub decoder: fn() -> Decoder,
}

/// Every decoder of what comes from outside.
pub const TARGETS: [Target; 17] = [
    messages::JOB,
    messages::RESULT,
    messages::CONTROL,
    messages::SUBMISSION,
    messages::TASK,
    messages::TURN,
    messages::TO_WORKERS,
    messages::REGISTRATION,
    arguments::ARGUMENTS,
    arguments::NAMES,
    answers::REACT,
    answers::OPENAI,
    answers::ANTHROPIC,
    files::AGENTS,
    files::MODELS,
    files::SCRIPT,
    files::TOOLS,
];

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
