//! Whatever models, tools and users write is text on every page, and bounded.

use redial_proto::{AgentRef, ErrorClass, Failure, Submission, TaskSubmission, ToolEffect, ToolSpec};
use redial_testkit::{Stack, arguments};
use redial_worker::{Context, Handler, Tool, ToolResult};
use serde_json::{json, value::RawValue};

use crate::{
    browser::Browser,
    corpus,
    scene::{clerk, models},
};

/// A tool that answers, or fails, with the text that it gets.
struct Parrot;

impl Handler for Parrot {
    fn run(&self, _: Context, sent: Box<RawValue>) -> futures_util::future::BoxFuture<'static, ToolResult> {
        Box::pin(async move {
            let sent: serde_json::Value = serde_json::from_str(sent.get()).unwrap();
            let text = sent["text"].as_str().unwrap_or_default().to_owned();
            if sent["fail"] == true {
                return Err(Failure::new(ErrorClass::BusinessRule, text));
            }
            if let Some(big) = sent["raw"].as_str() {
                return Ok(RawValue::from_string(big.to_owned()).unwrap());
            }
            Ok(RawValue::from_string(json!({ "said": text }).to_string()).unwrap())
        })
    }
}

#[tokio::test]
async fn hostile_texts_stay_texts_on_every_page() {
    let Some(browser) = Browser::start().await else { return };
    let mut stack = Stack::start().await;
    let parrot = ToolSpec { effect: ToolEffect::Read, ..ToolSpec::named("parrot") };
    stack.work(vec![Tool::from_handler(parrot, Parrot)]).await;
    let folder = tempfile::tempdir().unwrap();
    let script: String = corpus::texts()
        .iter()
        .enumerate()
        .map(|(n, (_, text))| {
            let text = json!(text.chars().take(2_000).collect::<String>());
            format!("[[rule]]\nwhen = {{ last = \"user\", contains = \"number {n}!\" }}\nthought = {text}\ncalls = [{{ name = \"parrot\", arguments = {{ text = {text} }} }}]\n[[rule]]\nwhen = {{ user = \"number {n}!\", tool = \"parrot\" }}\ntext = {text}\n")
        })
        .collect();
    let script = script.replace("\\u007f", "\\u007F");
    stack.serve_models(&models(folder.path(), &script)).await;
    let gateway = stack.serve_http().await;
    let mut paths: Vec<String> = [
        "/console",
        "/console/tasks",
        "/console/calls",
        "/console/failed",
        "/console/conversations",
        "/console/models",
        "/console/audit",
    ]
    .map(str::to_owned)
    .to_vec();
    for (n, (name, text)) in corpus::texts().into_iter().enumerate() {
        for fail in [false, true] {
            let call = stack.call("parrot", json!({ "text": text, "fail": fail })).await;
            stack.ended(call).await;
            paths.push(format!("/console/calls/{call}"));
        }
        let input = format!("number {n}! {}", text.chars().take(3_000).collect::<String>());
        let task = TaskSubmission::new(input, AgentRef::Inline(Box::new(clerk())));
        let task = stack.task(&task).await;
        stack.task_ended(task).await;
        let pages = ["", "/corrections", "/conversation", "/turns/1", "/turns/2"];
        paths.extend(
            pages.iter().take(if name == "script" { 5 } else { 3 }).map(|page| format!("/console/tasks/{task}{page}")),
        );
    }
    for raw in [corpus::many_keys(), corpus::deep(), json!(vec!["<i>y</i>".repeat(20); 4_000]).to_string()] {
        let call = stack.call("parrot", json!({ "raw": raw })).await;
        stack.ended(call).await;
        paths.push(format!("/console/calls/{call}"));
    }
    let many = stack
        .accepted(&Submission::new("parrot", arguments(serde_json::from_str(&corpus::many_keys()).unwrap())))
        .await;
    stack.ended(many).await;
    paths.push(format!("/console/calls/{many}"));
    paths.push("/console/calls?contains=%3Cscript%3Ewindow.hacked%3D1%3C%2Fscript%3E".to_owned());

    let page = browser.open(&gateway.url, "/console").await;
    for path in paths {
        page.go(&path).await;
        page.eval("document.querySelectorAll('details').forEach(d => d.open = true);").await;
        assert_eq!(page.eval("return window.hacked === undefined;").await, true, "a script ran at {path}");
        let strange = page
            .count(
                "main script, main img, main iframe, main [onclick], main [onerror], main [onfocus], main b b, main i",
            )
            .await;
        assert_eq!(strange, 0, "a text became an element at {path}");
        let links = page
            .eval("return [...document.querySelectorAll('a[href]')].filter(a => a.protocol === 'javascript:').length;")
            .await;
        assert_eq!(links, 0, "{path}");
        let hidden = page.eval("return /[\\u001b\\u202e\\u200b\\u2066\\u009b]/.test(document.body.textContent);").await;
        assert_eq!(hidden, false, "a character that cannot be seen is shown as it is at {path}");
        let wide =
            page.eval("return document.documentElement.scrollWidth - document.documentElement.clientWidth;").await;
        assert!(wide.as_i64().unwrap() <= 0, "{path} is {wide} too wide");
        assert!(page.bytes().await < 1_000_000, "{path} is too large");
    }
    page.go("/console/tasks").await;
    page.sees("main", "请订明天的机票 مرحبا بالعالم").await;
    browser.close().await;
    drop(gateway);
    stack.finish().await;
}
