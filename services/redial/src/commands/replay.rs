//! `redial replay`: repeats the decisions of a recorded task and reports every difference. A record in a file is a
//! regression test.

use std::{fs, path::Path, process::ExitCode};

use redial_proto::{ApiError, Code, TaskId};
use redial_views::{Difference, SavedTask, TaskAudit};
use serde_json::{Value, json};

use crate::{
    cli::ReplayArgs,
    connect, exit,
    ids::{self, IdText, Of},
    output,
    settings::Settings,
};

pub(crate) async fn run(settings: &Settings, args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let saved = match (&args.file, &args.task) {
        (Some(file), _) => from_file(file)?,
        (None, Some(task)) => from_database(settings, task).await?,
        (None, None) => anyhow::bail!("neither a task nor a file is given"),
    };
    let differences = saved.replay();
    if settings.json() {
        output::json(&as_json(&saved, &differences))?;
    } else {
        output::line(text(&saved, &differences))?;
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// Converts the record like one in a file, so that a file is never incomplete.
async fn from_database(settings: &Settings, task: &IdText) -> anyhow::Result<SavedTask> {
    let store = connect::store(settings).await?;
    let task = ids::in_store(&store, task, Of::Task).await?;
    let Some(record) = TaskAudit::load(&store, TaskId(task)).await? else {
        return Err(connect::task_not_found(task));
    };
    Ok(serde_json::from_str(&serde_json::to_string(&record)?)?)
}

fn from_file(file: &Path) -> Result<SavedTask, ApiError> {
    let name = file.display();
    let text = fs::read_to_string(file)
        .map_err(|error| ApiError::new(Code::InvalidValue, format!("--file {name}: {error}")))?;
    serde_json::from_str(&text).map_err(|error| {
        let message =
            format!("{name} is not a record of a task: {error}; allowed: what redial show TASK --json writes");
        ApiError::new(Code::InvalidMessage, message)
    })
}

fn text(saved: &SavedTask, differences: &[Difference]) -> String {
    let mut text = format!("{} steps, {} decisions: ", saved.steps.len(), saved.decisions());
    match differences.len() {
        0 => text.push_str("identical"),
        1 => text.push_str("1 difference"),
        n => text.push_str(&format!("{n} differences")),
    }
    for difference in differences {
        let [recorded, replayed] = [&difference.recorded, &difference.replayed]
            .map(|json| json.as_deref().map_or_else(|| "nothing".to_owned(), output::plain));
        let step = difference.step;
        text.push_str(&format!("\nstep {step}\n  on record  {recorded}\n  replayed   {replayed}"));
    }
    text
}

fn as_json(saved: &SavedTask, differences: &[Difference]) -> Value {
    let value = |json: &Option<String>| json.as_deref().and_then(|json| serde_json::from_str::<Value>(json).ok());
    let difference = |difference: &Difference| {
        let Difference { step, recorded, replayed } = difference;
        json!({ "step": step, "recorded": value(recorded), "replayed": value(replayed) })
    };
    json!({
        "task": saved.task,
        "steps": saved.steps.len(),
        "decisions": saved.decisions(),
        "identical": differences.is_empty(),
        "differences": differences.iter().map(difference).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of `redial show TASK --json` for a follow-up task with a repaired call.
    const RECORDED: &str = include_str!("replay/recorded.json");

    fn changed(change: impl FnOnce(&mut Value)) -> SavedTask {
        let mut record: Value = serde_json::from_str(RECORDED).unwrap();
        change(&mut record);
        serde_json::from_str(&record.to_string()).unwrap()
    }

    #[test]
    fn a_recorded_task_replays_without_a_difference() {
        let saved: SavedTask = serde_json::from_str(RECORDED).unwrap();
        let differences = saved.replay();
        assert_eq!(text(&saved, &differences), "4 steps, 9 decisions: identical");
        assert_eq!(as_json(&saved, &differences)["identical"], true);
        assert!(!saved.earlier.is_empty(), "it is a follow-up");
    }

    #[test]
    fn a_difference_is_named_with_its_step() {
        let saved = changed(|record| record["steps"][1]["decisions"][0]["seq"] = 99.into());
        let differences = saved.replay();
        let told = text(&saved, &differences);
        assert!(told.starts_with("4 steps, 9 decisions: "), "{told}");
        assert!(
            told.contains("\nstep 2\n  on record  {\"decision\":\"message\",\"seq\":99}\n  replayed   {"),
            "{told}"
        );
        let json = as_json(&saved, &differences);
        assert_eq!(json["differences"][0]["recorded"]["seq"], 99);
        assert_ne!(json["differences"][0]["replayed"]["seq"], 99);
    }

    #[test]
    fn a_call_counts_once_it_has_ended() {
        let saved = changed(|record| {
            record["calls"][0]["state"] = "running".into();
            record["calls"][1]["attempts_made"][0]["output"] = Value::Null;
        });
        assert!(saved.calls[0].ended().is_none());
        let tool = saved.calls[1].ended().unwrap();
        assert_eq!((tool.call_index, tool.output.as_deref(), tool.arguments), (1, Some("null"), None));
        assert!(saved.calls[2].ended().unwrap().arguments.is_some(), "a model's turn");
    }

    #[test]
    fn field_errors_of_the_last_attempt_are_those_of_the_call() {
        let failed = |class: &str| {
            let saved = changed(|record| {
                let call = &mut record["calls"][1];
                (call["state"], call["class"]) = ("failed".into(), "invalid_arguments".into());
                let attempt = &mut call["attempts_made"][0];
                (attempt["outcome"], attempt["class"]) = ("failed".into(), class.into());
                attempt["details"] = json!([{"path": "/a", "rule": "type", "allowed": "b"}]);
            });
            let call = saved.calls[1].ended().unwrap();
            (call.failure.unwrap().details.len(), call.output)
        };
        assert_eq!(failed("invalid_arguments"), (1, None));
        assert_eq!(failed("lost"), (0, None));
    }

    #[test]
    fn a_file_without_a_record_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.json");
        let missing = from_file(&file).unwrap_err();
        assert_eq!(missing.code, Code::InvalidValue);
        fs::write(&file, "{\"call\": \"01936b1c-0000-7000-8000-000000000001\"}").unwrap();
        let wrong = from_file(&file).unwrap_err();
        assert_eq!(wrong.code, Code::InvalidMessage);
        assert!(
            wrong.message.contains("a.json is not a record of a task") && wrong.message.contains("--json"),
            "{wrong}"
        );
    }
}
