//! A scripted model: a file of rules, of which the first one that matches the conversation answers.

mod build;
mod context;
mod file;
mod response;
mod rule;
mod rules;
mod template;
mod when;

use std::{collections::HashMap, fs, path::Path};

use chrono::{NaiveDate, Utc};
use parking_lot::Mutex;
use redial_files::FileError;
use redial_proto::{Failure, TaskId, TurnReply, TurnRequest, limits};
use regex::Captures;

use self::{context::Context, response::Response, rule::Rule};
use crate::{failure, piece::Watch};

/// Counts of rules with `times` are kept for this many combinations of turn and rule.
const REMEMBERED: usize = 10_000;
/// Bytes of the last message that the error quotes if no rule matches.
const QUOTED: usize = 500;

/// The rules of one file.
#[derive(Default)]
pub(crate) struct Script {
    /// The file's name, for messages.
    name: String,
    rules: Vec<Rule>,
    /// How often a rule with `times` has answered in a turn.
    answered: Mutex<HashMap<(TaskId, u32, usize), u32>>,
}

impl Script {
    /// Reads a file; the errors are everything that is wrong in it, at most [`redial_files::LIMIT`].
    pub(crate) fn load(path: &Path) -> Result<Self, Vec<FileError>> {
        let text = fs::read_to_string(path)
            .map_err(|error| vec![FileError::of_file(path, format!("the file cannot be read: {error}"))])?;
        let rules = rules::read(path, &text)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, rules, answered: Mutex::default() })
    }

    pub(crate) async fn ask(&self, request: &TurnRequest, watch: Watch<'_>) -> Result<TurnReply, Failure> {
        let (response, reply) = self.reply(request, Utc::now().date_naive());
        if let Some(response) = response {
            response.pace(reply.as_ref().ok(), watch).await;
        }
        reply
    }

    /// Returns the response of the rule that matches, and the reply that it gives to this request.
    fn reply(&self, request: &TurnRequest, today: NaiveDate) -> (Option<&Response>, Result<TurnReply, Failure>) {
        let context = Context::of(request, today);
        let Some((rule, captures)) = self.matching(&context) else { return (None, Err(self.no_match(&context))) };
        let reply = rule.response.reply(&context, captures.as_ref()).map_err(|mut failure| {
            if rule.response.is_broken(&failure) {
                failure.message = format!("script {}: {}: {}", self.name, rule.name, failure.message);
            }
            failure
        });
        (Some(&rule.response), reply)
    }

    fn matching<'m>(&self, context: &Context<'m>) -> Option<(&Rule, Option<Captures<'m>>)> {
        self.rules.iter().enumerate().find_map(|(index, rule)| {
            let captures = rule.when.matches(context)?;
            self.may_answer(index, rule, context.request).then_some((rule, captures))
        })
    }

    /// Counts an answer of a rule with `times`.
    fn may_answer(&self, index: usize, rule: &Rule, request: &TurnRequest) -> bool {
        let Some(times) = rule.times else { return true };
        let mut answered = self.answered.lock();
        if answered.len() >= REMEMBERED {
            answered.clear();
        }
        let count = answered.entry((request.task, request.turn, index)).or_default();
        *count += 1;
        *count <= times
    }

    fn no_match(&self, context: &Context<'_>) -> Failure {
        let (role, text) = context.last.map_or(("no", ""), |last| (last.role.as_str(), last.content.as_str()));
        failure::configuration(format!(
            "script {}: no rule matches; the last message is a {role} message: {} ({} results since the user's message, {} \
             tools offered)",
            self.name,
            limits::shorten(text, QUOTED),
            context.results.len(),
            context.request.tools.len(),
        ))
    }
}
