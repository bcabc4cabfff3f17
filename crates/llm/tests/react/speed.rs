//! Time grows linearly with the length of the text, whatever it contains.

use std::time::Duration;

use redial_llm::react;

use crate::asked;

/// Adversarial texts of about this many bytes.
fn hostile(bytes: usize) -> Vec<(&'static str, String)> {
    let fill = |part: &str| part.repeat(bytes / part.len());
    vec![
        ("labels", fill("Thought:\n")),
        ("actions", fill("Action: a\nAction Input: {\n")),
        ("refused actions", fill("Action: None\n")),
        ("refused actions and an answer", format!("{}Answer: x", fill("Action: none\n"))),
        ("one line", fill("Action: a Action Input: {} ")),
        ("half labels", fill("Action Input ")),
        ("markers", fill("*_#> -`")),
        ("fences", fill("```\n")),
        ("fenced inputs", format!("Action: a\nAction Input:\n{}", fill("```json\n{"))),
        ("open objects", format!("Action: a\nAction Input: {}", fill("{\"a\":"))),
        ("open arrays", format!("Action: a\nAction Input: {{\"a\":{}", fill("["))),
        ("brackets", format!("Action: a{}", fill("("))),
        ("quotes", format!("Action: {}", fill("\""))),
        ("blanks", fill(" ")),
        ("empty lines", fill("\n")),
        ("Chinese", fill("行动：思考\n")),
        ("numbers", format!("Action {}: a", fill("1"))),
        ("an answer", format!("Answer: {}", fill("Action: a\n"))),
        ("opening tags", fill("<think>")),
        ("closing tags", fill("</think>")),
        ("brackets of tags", fill("<")),
        ("tags without an end", fill("<think ")),
        ("open objects with tags", fill("<think>{\"a\":")),
        ("strings with tags", fill("</think>{\"a\":\"")),
        ("backticks", fill("`</think>``")),
        ("runs of backticks", fill("`</think>``</think>```\n````\n")),
        ("inputs without an end", fill("Action Input: {/*\n")),
        ("inputs with a string", fill("Action: a\nAction Input: {\"a\": \"\n")),
        ("objects on lines", fill("{\n")),
        ("objects with a key", fill("{\"action\n")),
        ("calls without an end", fill("<tool_call>{")),
        ("calls with a name", fill("<tool_call>{\"name\":\"get_weather\"")),
        ("calls of an unknown tool", fill("<tool_call>{\"name\":\"x\",\"arguments\":{}}</tool_call>")),
        ("calls of a tool", fill("<tool_call>{\"name\":\"get_weather\",\"arguments\":{}}</tool_call>")),
        ("invented results", fill("<tool_response>")),
        ("lists of calls", fill("[TOOL_CALLS]")),
        ("lists of calls with brackets", fill("[TOOL_CALLS][{")),
        ("functions", fill("<function=")),
        ("functions with a name", fill("<function=get_weather>")),
        ("functions with arguments", fill("<function=get_weather>{")),
        ("Python tags", fill("<|python_tag|>{\"name\":")),
        ("Python tags with semicolons", format!("<|python_tag|>{}", fill("{\"name\":\"get_weather\"};"))),
        ("a call with names", format!("Action: get_weather({})", fill("a=1,"))),
    ]
}

/// Processor time of this thread: what other processes do meanwhile does not count.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

fn fastest(text: &str) -> Duration {
    let asked = asked();
    let body = serde_json::json!({"choices": [{"message": {"content": text}}]});
    let run = |_| {
        let began = cpu();
        let _ = react::read(text, &asked, false);
        let _ = redial_llm::openai::reply(&asked, &body);
        cpu().saturating_sub(began)
    };
    (0..3).map(run).min().unwrap()
}

#[test]
fn time_grows_with_the_length_and_no_faster() {
    let (small, large) = (hostile(25_000), hostile(200_000));
    for ((name, small), (_, large)) in small.iter().zip(&large) {
        let (short, long) = (fastest(small), fastest(large));
        // Eight times the length; the square would be 64 times. The caches are allowed their share, and a little always.
        let allowed = short * 32 + Duration::from_millis(50);
        assert!(long < allowed, "{name}: {short:?} for 25 kB, {long:?} for 200 kB");
    }
}
