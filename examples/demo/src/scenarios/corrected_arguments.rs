//! Four requests whose first call breaks rules of the airline. Each time the model gets feedback in Chinese about every
//! broken rule at once, corrects its call, and the flight is booked once.

use std::collections::HashSet;

use anyhow::{Context, ensure};
use redial_proto::{ErrorClass, Language};

use crate::{
    dates::Dates,
    stack::Stack,
    task::{Feedback, Task},
};

const AGENT: &str = "flights";

/// A user's request, and the arguments that are wrong in the scripted model's first call.
struct Request {
    /// A short description of the problem, for the output.
    problem: &'static str,
    input: String,
    wrong_paths: &'static [&'static str],
}

pub(super) async fn run(stack: &mut Stack) -> anyhow::Result<String> {
    let requests = requests(&stack.dates);
    let mut ids = Vec::new();
    for request in &requests {
        ids.push(stack.submit_task(AGENT, &request.input).await?);
    }
    let mut tasks = Vec::new();
    for id in &ids {
        tasks.push(stack.wait_for_task(*id).await?);
    }
    stack.shown_task = ids.get(1).copied();
    let bookings = check_booked_once(stack, &tasks)?;
    let mut problems = Vec::new();
    for (task, request) in tasks.iter().zip(&requests) {
        let feedback = check_corrected(task)?;
        ensure!(feedback.paths() == request.wrong_paths, "the feedback is {feedback:?}");
        problems.push(format!("{} ({})", request.problem, request.wrong_paths.join(" ")));
    }
    Ok(format!(
        "{}: feedback in Chinese named every broken rule, the model corrected its call, booked once: {}",
        problems.join(", "),
        bookings.join(" ")
    ))
}

/// The agent, and what users ask of it.
pub(super) fn requests_of_users(dates: &Dates) -> (&'static str, Vec<String>) {
    (AGENT, requests(dates).into_iter().map(|request| request.input).collect())
}

fn requests(Dates { today, spoken, .. }: &Dates) -> [Request; 4] {
    let request = |problem, wrong_paths, input: String| Request {
        problem,
        input: format!("今天是 {today}。{input}"),
        wrong_paths,
    };
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

/// Checks, for any model, that the airline has exactly the bookings of the conversations, each once. Returns their
/// numbers.
pub(super) fn check_booked_once(stack: &Stack, tasks: &[Task]) -> anyhow::Result<Vec<String>> {
    let mut bookings = Vec::new();
    for task in tasks {
        for result in task.results("book_flight")? {
            bookings.push(result["booking"].as_str().with_context(|| format!("the result is {result}"))?.to_owned());
        }
    }
    let requests = stack.ledgers.bookings()?;
    let keys: HashSet<&str> = requests.iter().map(|request| request.key.as_str()).collect();
    ensure!(
        (requests.len(), keys.len()) == (bookings.len(), bookings.len()),
        "{} bookings in the conversations, {} requests at the airline, {} of them different",
        bookings.len(),
        requests.len(),
        keys.len()
    );
    Ok(bookings)
}

/// Checks for one wrong call, complete feedback in Chinese, one correct call, and an answer. Returns the feedback.
fn check_corrected(task: &Task) -> anyhow::Result<Feedback> {
    task.expect(3, 2, 1)?;
    let [feedback] = <[Feedback; 1]>::try_from(task.feedback()?).map_err(|all| anyhow::anyhow!("feedback: {all:?}"))?;
    ensure!(feedback.class == ErrorClass::InvalidArguments, "the class is {}", feedback.class);
    ensure!(
        feedback.corrections_left.is_some_and(|left| left > 0),
        "corrections left: {:?}",
        feedback.corrections_left
    );
    ensure!(Language::of(&feedback.guidance) == Language::Zh, "the feedback is not in Chinese: {feedback:?}");
    let complete = feedback.details.iter().all(|detail| detail.sent.is_some() && !detail.allowed.is_empty());
    ensure!(complete, "a detail does not say what was sent and what is allowed: {feedback:?}");
    Ok(feedback)
}
