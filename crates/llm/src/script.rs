//! A file of rules that plays a model: the first rule that fits the conversation answers.

mod answer;
mod build;
mod file;
mod moment;
mod template;
mod when;

use std::{
    collections::HashMap,
    fs,
    path::Path,
    sync::{Mutex, PoisonError},
};

use chrono::{NaiveDate, Utc};
use redial_proto::{Failure, TaskId, TurnReply, TurnRequest, limits};
use regex::Captures;

use self::{answer::Answer, file::File, moment::Moment, when::When};
use crate::{ModelsError, http::failure, model::Watch};

/// Turns whose rules with `times` are remembered.
const REMEMBERED: usize = 10_000;
/// Bytes of the last message that are quoted where no rule fits.
const QUOTED: usize = 500;

/// The rules.
pub(crate) struct Script {
    /// The file's name, for people.
    name: String,
    rules: Vec<Rule>,
    /// How often a rule with `times` has answered in a turn.
    answered: Mutex<HashMap<(TaskId, u32, usize), u32>>,
}

struct Rule {
    /// Its name or number, for people.
    name: String,
    when: When,
    /// Answers only so many requests of one turn, so that a retry finds another rule.
    times: Option<u32>,
    answer: Answer,
}

impl Script {
    pub(crate) fn load(path: &Path) -> Result<Self, ModelsError> {
        let text = fs::read_to_string(path)
            .map_err(|error| ModelsError::of_file(path, format!("the file cannot be read: {error}")))?;
        let file: File = toml::from_str(&text).map_err(|error| ModelsError::of_syntax(path, &text, &error))?;
        let rules = build::rules(file, path, &text)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, rules, answered: Mutex::default() })
    }

    pub(crate) async fn ask(&self, request: &TurnRequest, watch: Watch<'_>) -> Result<TurnReply, Failure> {
        let (answer, reply) = self.reply(request, Utc::now().date_naive());
        if let Some(answer) = answer {
            answer.pace(reply.as_ref().ok(), watch).await;
        }
        reply
    }

    /// The rule's answer, and what it says to this request.
    fn reply(&self, request: &TurnRequest, today: NaiveDate) -> (Option<&Answer>, Result<TurnReply, Failure>) {
        let moment = Moment::of(request, today);
        let Some((rule, captures)) = self.fitting(&moment) else { return (None, Err(self.nothing_fits(&moment))) };
        let reply = rule.answer.reply(&moment, captures.as_ref()).map_err(|mut failure| {
            if rule.answer.is_broken(&failure) {
                failure.message = format!("script {}: {}: {}", self.name, rule.name, failure.message);
            }
            failure
        });
        (Some(&rule.answer), reply)
    }

    fn fitting<'m>(&self, moment: &Moment<'m>) -> Option<(&Rule, Option<Captures<'m>>)> {
        self.rules.iter().enumerate().find_map(|(n, rule)| {
            let captures = rule.when.fits(moment)?;
            self.may_answer(n, rule, moment.request).then_some((rule, captures))
        })
    }

    /// Counts an answer of a rule with `times`.
    fn may_answer(&self, n: usize, rule: &Rule, request: &TurnRequest) -> bool {
        let Some(times) = rule.times else { return true };
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if answered.len() >= REMEMBERED {
            answered.clear();
        }
        let count = answered.entry((request.task, request.turn, n)).or_default();
        *count += 1;
        *count <= times
    }

    fn nothing_fits(&self, moment: &Moment<'_>) -> Failure {
        let (role, content) = moment.last.map_or(("no", ""), |last| (last.role.as_str(), last.content.as_str()));
        failure::configuration(format!(
            "script {}: no rule fits; the last message is a {role} message: {} ({} results since the user's message, {} \
             tools offered)",
            self.name,
            limits::shorten(content, QUOTED),
            moment.results.len(),
            moment.request.tools.len(),
        ))
    }
}
