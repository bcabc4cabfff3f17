//! Whatever models, tools and users write is text on every page, and bounded.

use std::fmt::Write as _;

use futures_util::future::BoxFuture;
use redial_proto::{AgentRef, ErrorClass, Failure, Submission, TaskSubmission, ToolEffect, ToolSpec};
use redial_testkit::{Stack, arguments};
use redial_worker::{Context, Handler, Tool, ToolResult};
use serde_json::{Value, json, value::RawValue};

use super::{
    browser::{Browser, Page},
    corpus::{self, ELEMENT},
    scene::{clerk, models},
};

/// A tool that answers, or fails, with the text that it gets.
struct Parrot;

impl Handler for Parrot {
    fn run(&self, _: Context, sent: Box<RawValue>) -> BoxFuture<'static, ToolResult> {
        Box::pin(async move {
            let sent: Value = serde_json::from_str(sent.get()).unwrap();
            let text = sent["text"].as_str().unwrap_or_default().to_owned();
            if sent["fail"] == true {
                return Err(Failure::new(ErrorClass::BusinessRule, text));
            }
            let answer = sent["raw"].as_str().map_or_else(|| json!({ "said": text }).to_string(), str::to_owned);
            Ok(RawValue::from_string(answer).unwrap())
        })
    }
}

/// A model that says the texts, and calls the tool with them.
fn script() -> String {
    let mut script = String::new();
    for (n, (_, text)) in corpus::texts().iter().enumerate() {
        let text = toml_text(&text.chars().take(2_000).collect::<String>());
        let _ = write!(
            script,
            "[[rule]]\nwhen = {{ last = \"user\", contains = \"number {n}!\" }}\nthought = {text}\n\
             calls = [{{ name = \"parrot\", arguments = {{ text = {text} }} }}]\n\
             [[rule]]\nwhen = {{ user = \"number {n}!\", tool = \"parrot\" }}\ntext = {text}\n"
        );
    }
    script
}

fn toml_text(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        // Braces are for what a script fills in.
        match c {
            '{' | '}' => out.push('|'),
            c if c.is_ascii_graphic() && c != '"' && c != '\\' || c == ' ' => out.push(c),
            c => _ = write!(out, "\\U{:08X}", u32::from(c)),
        }
    }
    out + "\""
}

/// Has everything said and called; the addresses that show it.
async fn everything(stack: &Stack) -> Vec<String> {
    let mut paths: Vec<String> = [
        "",
        "/tasks",
        "/calls",
        "/failed",
        "/conversations",
        "/models",
        "/audit",
        "/tools",
        "/tools/parrot",
        "/redrives",
    ]
    .map(|path| format!("/console{path}"))
    .to_vec();
    for (n, (name, text)) in corpus::texts().into_iter().enumerate() {
        for fail in [false, true] {
            let call = stack.call("parrot", json!({ "text": text, "fail": fail })).await;
            stack.ended(call).await;
            paths.push(format!("/console/calls/{call}"));
            paths.extend(fail.then(|| format!("/console/calls/{call}/again")));
        }
        let input = format!("number {n}! {}", text.chars().take(3_000).collect::<String>());
        let mut task = TaskSubmission::new(input, AgentRef::Inline(Box::new(clerk())));
        let is_name = text.len() < 150 && !text.chars().any(char::is_control);
        task.conversation = is_name.then(|| text.clone());
        let task = stack.task(&task).await;
        stack.task_ended(task).await;
        let pages = ["", "/corrections", "/conversation", "/replay", "/turns/1", "/turns/2"];
        let shown = if matches!(name, "script" | "end of a field") { 6 } else { 3 };
        paths.extend(pages.iter().take(shown).map(|page| format!("/console/tasks/{task}{page}")));
    }
    for raw in [corpus::many_keys(), corpus::deep(), corpus::long()] {
        let call = stack.call("parrot", json!({ "raw": raw })).await;
        stack.ended(call).await;
        paths.push(format!("/console/calls/{call}"));
    }
    let many = arguments(serde_json::from_str(&corpus::many_keys()).unwrap());
    let many = stack.accepted(&Submission::new("parrot", many)).await;
    stack.ended(many).await;
    paths.push(format!("/console/calls/{many}"));
    paths.push(format!("/console/calls?contains=%3C{ELEMENT}%3E"));
    paths.push(format!("/console/find?q=%3C{ELEMENT}%3E"));
    paths
}

/// What became of texts on a page; empty if they are texts.
async fn wrong(page: &Page<'_>) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    let is = async |script: &str| page.eval(script).await == true;
    if !is("return window.hacked === undefined;").await {
        wrong.push("a script ran");
    }
    if page.count(ELEMENT).await
        + page.count("main script, main img, main iframe, main [onclick], main [onerror]").await
        > 0
    {
        wrong.push("a text became an element");
    }
    if !is("return ![...document.querySelectorAll('a[href]')].some(a => a.protocol === 'javascript:');").await {
        wrong.push("a link runs a script");
    }
    if !is("return !/[\\u0007\\u0008\\u001b\\u009b\\u200b\\u2028\\u202c\\u202e\\u2066\\u2069\\ufeff]/.test(document.body.innerText);").await {
        wrong.push("a character that cannot be seen is there as it is");
    }
    if !is("return document.documentElement.scrollWidth <= document.documentElement.clientWidth;").await {
        wrong.push("it is too wide");
    }
    if page.bytes().await >= 1_000_000 {
        wrong.push("it is too large");
    }
    wrong
}

#[tokio::test]
async fn hostile_texts_stay_texts_on_every_page() {
    let Some(browser) = Browser::start().await else { return };
    let mut stack = Stack::start().await;
    let parrot = ToolSpec { effect: ToolEffect::Read, ..ToolSpec::named("parrot") };
    stack.work(vec![Tool::from_handler(parrot, Parrot)]).await;
    let folder = tempfile::tempdir().unwrap();
    stack.serve_models(&models(folder.path(), &script())).await;
    let gateway = stack.serve_http().await;
    let page = browser.open(&gateway.url, "/console").await;
    // The look finds what it looks for.
    page.eval(&format!(
        "const e = document.createElement('{ELEMENT}'); e.append('\\u202e'); document.body.append(e); window.hacked = 1;"
    ))
    .await;
    assert_eq!(wrong(&page).await.len(), 3);
    for path in everything(&stack).await {
        page.go(&path).await;
        page.eval("document.querySelectorAll('details').forEach(d => d.open = true);").await;
        let wrong = wrong(&page).await;
        assert!(wrong.is_empty(), "{path}: {wrong:?}");
    }
    page.go("/console/tasks").await;
    page.sees("main", "请订明天的机票 مرحبا بالعالم").await;
    page.sees("main", "{{7*7}}").await;
    browser.close().await;
    drop(gateway);
    stack.finish().await;
}
