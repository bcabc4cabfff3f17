//! A tool with a rule that nobody wrote down: the model learns it from the error, and answers.

use anyhow::ensure;
use redial_proto::ErrorClass;

use crate::stage::Stage;

const RULE: &str = "Input queries must be all capitals";

pub(super) async fn play(stage: &Stage) -> anyhow::Result<String> {
    let task = stage.task("weather", "What is the weather like in San Francisco?").await?;
    if !stage.is_scripted() {
        return Ok(task.told());
    }
    task.expect(3, 2, 1)?;
    let feedback = task.feedback()?;
    let [told] = feedback.as_slice() else { anyhow::bail!("the feedback is {feedback:?}") };
    ensure!(told.class == ErrorClass::BusinessRule, "the class is {}", told.class);
    ensure!(told.message.contains(RULE), "the model was told {:?}", told.message);
    let results = task.results("get_weather")?;
    ensure!(results.len() == 1 && results[0]["location"] == "SAN FRANCISCO", "the results are {results:?}");
    Ok(format!("San Francisco: {RULE:?}; SAN FRANCISCO: {} °C; answered {:?}", results[0]["celsius"], task.answer()))
}
