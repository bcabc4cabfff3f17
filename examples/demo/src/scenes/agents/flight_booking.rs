//! Four requests whose first call breaks the airline's rules. Each time the model gets to know every broken rule at
//! once, in Chinese, corrects its call, and the flight is booked once.

use std::collections::HashSet;

use anyhow::{Context, ensure};
use redial_proto::{ErrorClass, Language};

use crate::{
    dates::Dates,
    stage::Stage,
    task::{Feedback, Task},
};

const AGENT: &str = "flights";

/// What a user wants, and where the scripted model's first call breaks rules.
struct Request {
    /// What is wrong with it, in short.
    trouble: &'static str,
    input: String,
    wrong: &'static [&'static str],
}

pub(super) async fn play(stage: &mut Stage) -> anyhow::Result<String> {
    let earlier = stage.books.bookings()?.len();
    let requests = requests(&stage.dates);
    let mut ids = Vec::new();
    for request in &requests {
        ids.push(stage.submit_task(AGENT, &request.input).await?);
    }
    let mut tasks = Vec::new();
    for id in &ids {
        tasks.push(stage.end_of_task(*id).await?);
    }
    stage.shown = ids.get(1).copied();
    let booked = booked_once(stage, &tasks, earlier)?;
    if !stage.is_scripted() {
        return Ok(tasks.iter().map(Task::told).collect::<Vec<_>>().join("; "));
    }
    let mut told = Vec::new();
    for (task, request) in tasks.iter().zip(&requests) {
        let feedback = corrected(task)?;
        ensure!(feedback.paths() == request.wrong, "rules were broken at {:?}: {feedback:?}", feedback.paths());
        told.push(format!("{} ({})", request.trouble, request.wrong.join(" ")));
    }
    Ok(format!(
        "{}: each told in Chinese of every broken rule, corrected, booked once: {}",
        told.join(", "),
        booked.join(" ")
    ))
}

fn requests(Dates { today, spoken, .. }: &Dates) -> [Request; 4] {
    let request =
        |trouble, wrong, input: String| Request { trouble, input: format!("今天是 {today}。{input}"), wrong };
    [
        request("明天", &["/date"], "请帮我订一张明天从上海去北京的机票。".to_owned()),
        request(
            "洛杉矶",
            &["/origin", "/date"],
            format!("我在洛杉矶，想{spoken}去成都，两个人。不能从洛杉矶出发就从上海出发，日期不变。"),
        ),
        request(
            "6 passengers",
            &["/passengers"],
            format!("我们 6 个人想{spoken}从广州去深圳。一次订不了这么多，就先订 5 个人的。"),
        ),
        request("today", &["/date"], "请订今天从成都去广州的机票，三个人。今天不行就订明天的。".to_owned()),
    ]
}

/// Whatever the model did: what it was told is booked was booked, once, and nothing else. Returns the bookings.
fn booked_once(stage: &Stage, tasks: &[Task], earlier: usize) -> anyhow::Result<Vec<String>> {
    let mut told = Vec::new();
    for task in tasks {
        for result in task.results("book_flight")? {
            told.push(result["booking"].as_str().with_context(|| format!("the result is {result}"))?.to_owned());
        }
    }
    let requests = stage.books.bookings()?.split_off(earlier);
    let keys: HashSet<&str> = requests.iter().map(|request| request.key.as_str()).collect();
    ensure!(
        (requests.len(), keys.len()) == (told.len(), told.len()),
        "{} bookings in the conversations, {} requests at the airline, {} of them different",
        told.len(),
        requests.len(),
        keys.len()
    );
    Ok(told)
}

/// One wrong call, feedback in Chinese that can be acted on, one right call, an answer.
fn corrected(task: &Task) -> anyhow::Result<Feedback> {
    task.expect(3, 2, 1)?;
    let [feedback] = <[Feedback; 1]>::try_from(task.feedback()?).map_err(|all| anyhow::anyhow!("feedback: {all:?}"))?;
    ensure!(feedback.class == ErrorClass::InvalidArguments, "the class is {}", feedback.class);
    ensure!(
        feedback.corrections_left.is_some_and(|left| left > 0),
        "corrections left: {:?}",
        feedback.corrections_left
    );
    ensure!(Language::of(&feedback.guidance) == Language::Zh, "the feedback is not in Chinese: {feedback:?}");
    let told = feedback.details.iter().all(|detail| !detail.sent.is_null() && !detail.allowed.is_empty());
    ensure!(told, "a detail does not say what was sent and what is allowed: {feedback:?}");
    Ok(feedback)
}
