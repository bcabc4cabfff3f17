//! The content of a tool message that reports a failure, within its limit.

use redial_proto::{ErrorClass, FieldError, limits};
use serde::Serialize;
use serde_json::Value;

/// Longest content, in bytes, whatever the limit of a task's results.
pub const MAX_FEEDBACK: usize = 16 * 1024;

/// What a model reads, field by field. `guidance` stands last: it is what a model reads last.
#[derive(Serialize)]
pub(super) struct Content<'a> {
    pub(super) status: &'static str,
    pub(super) class: ErrorClass,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) details: Vec<FieldError>,
    /// Broken rules that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) details_left_out: usize,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) undeclared: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) example: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) corrections_left: Option<u32>,
    pub(super) guidance: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What gets smaller, in this order, until the content fits.
const STEPS: [Step; 9] = [
    Step::Undeclared,
    Step::Message(1_000),
    Step::Details(3),
    Step::Message(300),
    Step::Details(1),
    Step::Example,
    Step::Sent,
    Step::Details(0),
    Step::Message(120),
];

#[derive(Clone, Copy)]
enum Step {
    Undeclared,
    Message(usize),
    Details(usize),
    Example,
    Sent,
}

impl Content<'_> {
    /// Writes the JSON text, of at most `most` bytes: complete JSON, in which each text that was cut says so. It does
    /// not get shorter than its own structure.
    pub(super) fn within(mut self, most: usize) -> String {
        let mut json = self.json();
        for step in STEPS {
            match step {
                Step::Details(least) => {
                    while json.len() > most && self.details.len() > least {
                        self.leave_out_details(least);
                        json = self.json();
                    }
                }
                _ if json.len() <= most => {}
                Step::Undeclared => self.undeclared = &[],
                Step::Message(bytes) => self.message = limits::shorten(&self.message, bytes),
                Step::Example => self.example = None,
                Step::Sent => self.sent = None,
            }
            json = self.json();
        }
        while json.len() > most && self.guidance.len() > MIN_GUIDANCE {
            let over = json.len() - most;
            let bytes = self.guidance.len().saturating_sub(over).max(MIN_GUIDANCE);
            self.guidance = limits::shorten(&self.guidance, bytes);
            json = self.json();
        }
        json
    }

    /// Leaves out half of the details, but not below `least`.
    fn leave_out_details(&mut self, least: usize) {
        let kept = (self.details.len() / 2).max(least);
        self.details_left_out += self.details.len() - kept;
        self.details.truncate(kept);
    }

    fn json(&self) -> String {
        // Maps have text keys only, so this cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Guidance is not cut to less, in bytes.
const MIN_GUIDANCE: usize = 60;
