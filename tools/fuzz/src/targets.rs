//! The decoders, each as a function of bytes.

mod answers;
mod arguments;
mod files;
mod messages;
mod target;

pub use self::target::{Decoder, Target};

/// Every decoder of what comes from outside.
pub const TARGETS: [Target; 18] = [
    messages::JOB,
    messages::RESULT,
    messages::CONTROL,
    messages::SUBMISSION,
    messages::TASK,
    messages::TURN,
    messages::TO_WORKERS,
    messages::REGISTRATION,
    arguments::ARGUMENTS,
    arguments::SCHEMAS,
    arguments::NAMES,
    answers::REACT,
    answers::OPENAI,
    answers::ANTHROPIC,
    files::AGENTS,
    files::MODELS,
    files::SCRIPT,
    files::TOOLS,
];
