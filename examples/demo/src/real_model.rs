//! A real model behind an OpenAI-compatible address, in place of the scripted ones. Nothing is known of it in advance: a
//! scene with it tells what the model did, always ends in bounded time, and checks only what holds for every model: a
//! valid conversation, a record that replays to the same decisions, and no side effect that happened twice.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use redial_proto::{ErrorClass, Role, limits};
use toml::{Table, Value};

use crate::{records::Task, redial::Redial, scenes, tell};

/// Turns and tool calls of a task, for a model that never comes to an end.
const TURNS: i64 = 8;
const TOOL_CALLS: i64 = 20;
/// Small servers handle one request at a time, some abort it when another one arrives, and some cannot stream calls. A
/// small model may never stop by itself.
const ENTRY: &str =
    "provider = \"openai\"\nconcurrency = 1\nstream = false\nmax_tokens = 512\nretry = { max_attempts = 2 }\n";

/// A line of progress comes at least this often.
const PROGRESS: Duration = Duration::from_secs(10);
/// How long cancelled tasks may take to end.
const STOP: Duration = Duration::from_secs(30);

/// Where the real model is.
#[derive(Clone, Debug)]
pub(crate) struct RealModel {
    /// Base URL, such as `http://127.0.0.1:8000/v1`.
    pub(crate) url: String,
    /// The model's name at its provider.
    pub(crate) model: String,
    /// The environment variable with the API key.
    pub(crate) key_env: Option<String>,
    /// How long a scene may take.
    pub(crate) limit: Duration,
}

impl RealModel {
    /// A `models.toml` in which every name of the scripted file stands for this model.
    pub(crate) fn models_toml(&self, scripted: &str) -> anyhow::Result<String> {
        let mut file: Table = scripted.parse().context("models.toml")?;
        let mut entry: Table = ENTRY.parse()?;
        // One that hangs leaves time for another try.
        let timeout = format!("{}ms", (self.limit / 3).as_millis());
        for (field, value) in [("base_url", &self.url), ("model", &self.model), ("timeout", &timeout)] {
            entry.insert(field.to_owned(), value.as_str().into());
        }
        if let Some(variable) = &self.key_env {
            entry.insert("key_env".to_owned(), variable.as_str().into());
        }
        for (_, model) in declared(&mut file, "models")?.iter_mut() {
            *model = entry.clone().into();
        }
        Ok(toml::to_string(&file)?)
    }

    /// An `agents.toml` with limits for every agent.
    pub(crate) fn agents_toml(&self, agents: &str) -> anyhow::Result<String> {
        let mut file: Table = agents.parse().context("agents.toml")?;
        let seconds = i64::try_from(self.limit.as_secs())?;
        let budgets: Table = format!("seconds = {seconds}\nturns = {TURNS}\ntool_calls = {TOOL_CALLS}").parse()?;
        for (_, agent) in declared(&mut file, "agents")?.iter_mut() {
            agent.as_table_mut().context("an agent is no table")?.insert("budgets".to_owned(), budgets.clone().into());
        }
        Ok(toml::to_string(&file)?)
    }
}

fn declared<'a>(file: &'a mut Table, what: &str) -> anyhow::Result<&'a mut Table> {
    file.get_mut(what).and_then(Value::as_table_mut).with_context(|| format!("no {what} are declared"))
}

/// Gives an agent these requests; returns a line about all of them and one about each.
pub(crate) async fn play(
    redial: &mut Redial,
    agent: &str,
    inputs: &[String],
    limit: Duration,
) -> anyhow::Result<String> {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for input in inputs {
        let id = redial.task(agent, input).await?;
        tasks.push((redial.show_task(id).await?, began.elapsed()));
    }
    redial.shown_task = redial.shown_task.or(tasks.first().map(|(task, _)| task.view.task));
    follow(redial, &mut tasks, began, began + limit).await?;
    let late: Vec<_> = tasks.iter().filter(|(task, _)| !task.has_ended()).map(|(task, _)| task.view.task).collect();
    if !late.is_empty() {
        let (seconds, all) = (limit.as_secs(), tasks.len());
        tell(format!("  {seconds} s are over: cancelling {} of {all} tasks", late.len()));
        for id in &late {
            // It may have ended meanwhile.
            let _ended = redial.run(&["cancel", &id.to_string()]).await;
        }
        follow(redial, &mut tasks, began, Instant::now() + STOP).await?;
    }
    let records: Vec<Task> = tasks.iter().map(|(task, _)| task.clone()).collect();
    for task in &records {
        if !task.has_ended() {
            bail!("task {} had not ended {} s after it was cancelled", task.view.task, STOP.as_secs());
        }
        redial.check_task(task).await?;
    }
    scenes::check_booked_once(redial, &records)?;
    if !records.iter().flat_map(Task::messages).any(|message| message.role == Role::Assistant) {
        let why = records.iter().find_map(|task| task.view.message.clone()).unwrap_or_default();
        bail!("the model answered nothing: {why}");
    }
    let answered = records.iter().filter(|task| task.view.answer.as_ref().is_some_and(|text| !text.is_empty()));
    let (answered, all) = (answered.count(), records.len());
    let mut text = format!("{answered} of {all} tasks have an answer; every conversation is valid and replays");
    for ((task, took), number) in tasks.iter().zip(1..) {
        text += &format!("\n     task {number} after {:.0} s: {}", took.as_secs_f64(), summary(task));
        if late.contains(&task.view.task) {
            text += &format!("; cancelled after {} s", limit.as_secs());
        }
    }
    Ok(text)
}

/// Looks at the tasks each second until all have ended, or until a point in time, and tells what changed.
async fn follow(redial: &Redial, tasks: &mut [(Task, Duration)], began: Instant, until: Instant) -> anyhow::Result<()> {
    let (mut told, mut told_at) = (String::new(), Instant::now());
    loop {
        for (task, took) in tasks.iter_mut().filter(|(task, _)| !task.has_ended()) {
            (*task, *took) = (redial.show_task(task.view.task).await?, began.elapsed());
        }
        let progress = |((task, _), number): (&(Task, Duration), u32)| {
            let view = &task.view;
            format!("task {number} {}, {} turns, {} tool calls", view.state, view.turns, view.tool_calls)
        };
        let now = tasks.iter().zip(1..).map(progress).collect::<Vec<_>>().join("; ");
        if now != told || told_at.elapsed() >= PROGRESS {
            tell(format!("  {:>4} s  {now}", began.elapsed().as_secs()));
            (told, told_at) = (now, Instant::now());
        }
        if tasks.iter().all(|(task, _)| task.has_ended()) || Instant::now() >= until {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What happened in a task, in one line.
fn summary(task: &Task) -> String {
    let answers = task.answers().into_iter();
    let calls = answers.map(|message| {
        let end = message.class.map_or("ok", ErrorClass::as_str);
        format!("{} {end}", message.tool.as_deref().unwrap_or("?"))
    });
    let calls = calls.collect::<Vec<_>>().join(", ");
    let view = &task.view;
    let code = view.code.map_or("no code", |code| code.as_str());
    let short = |text: &str| limits::shorten(&text.split_whitespace().collect::<Vec<_>>().join(" "), 120);
    let said = match (view.answer.as_deref().unwrap_or_default(), view.message.as_deref()) {
        ("", Some(why)) => format!("no answer: {}", short(why)),
        ("", None) => "no answer".to_owned(),
        (answer, _) => format!("answered {:?}", short(answer)),
    };
    let called = if calls.is_empty() { "nothing" } else { &calls };
    format!("{} ({code}), {} turns: called {called}; {said}", view.state, view.turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_model_replaces_every_scripted_one_and_agents_get_limits() {
        let (url, model, limit) = ("http://x/v1".into(), "m".into(), Duration::from_secs(30));
        let model = RealModel { url, model, key_env: Some("KEY".into()), limit };
        let replaced: Table = model.models_toml(include_str!("../models.toml")).unwrap().parse().unwrap();
        let wanted = "base_url = \"http://x/v1\"\nmodel = \"m\"\nkey_env = \"KEY\"\ntimeout = \"10000ms\"\n";
        let wanted: Table = format!("{ENTRY}{wanted}").parse().unwrap();
        assert!(replaced["models"].as_table().unwrap().values().all(|model| model.as_table() == Some(&wanted)));
        let agents: Table = model.agents_toml(include_str!("../agents.toml")).unwrap().parse().unwrap();
        for (name, agent) in agents["agents"].as_table().unwrap() {
            let spec: redial_proto::AgentSpec = agent.clone().try_into().unwrap();
            assert_eq!(spec.check(), Ok(()), "{name}");
            assert_eq!((spec.budgets.seconds, spec.budgets.turns), (30, 8), "{name}");
        }
    }
}
