//! What HTTP tools send to the proxy of the environment, and what their errors say about it.

use redial_proto::ErrorClass;
use redial_testkit::{Reply, ScriptedHttp};
use redial_tools::{CommandUser, Context, Tool, load_with};
use serde_json::value::RawValue;

const SECRET: &str = "canary-5f1c";

/// Makes a tool that gets this address, in an environment with a proxy.
fn tool(proxy: &ScriptedHttp, url: &str, more: &str) -> Tool {
    let text = format!("[[tool]]\nname = \"t\"\n[tool.http]\nmethod = \"GET\"\nurl = \"{url}\"\n{more}\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tools.toml");
    std::fs::write(&path, text).unwrap();
    let variable = |name: &str| match name {
        "HTTP_PROXY" | "HTTPS_PROXY" => Some(proxy.url("")),
        "KEY" => Some(SECRET.to_owned()),
        _ => None,
    };
    load_with(&path, &CommandUser::Own, &variable).unwrap().remove(0)
}

async fn run(tool: &Tool) -> Result<String, (ErrorClass, String)> {
    let result = tool.run(Context::new("t"), RawValue::from_string("{}".to_owned()).unwrap()).await;
    result.map(|output| output.get().to_owned()).map_err(|failure| (failure.class, failure.message))
}

#[tokio::test]
async fn a_secret_for_this_machine_is_not_given_to_a_proxy() {
    let (proxy, service) = (ScriptedHttp::start().await, ScriptedHttp::start().await);
    service.script("/x", [Reply::json("1"), Reply::json("2")]);
    let with_secret = "headers = { Authorization = \"Bearer {{secret.KEY}}\" }";
    assert_eq!(run(&tool(&proxy, &service.url("/x"), with_secret)).await.unwrap(), "1");
    assert_eq!(run(&tool(&proxy, &service.url("/x"), "")).await.unwrap(), "2");
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
}

#[tokio::test]
async fn a_secret_in_clear_text_is_not_given_to_a_proxy_and_the_error_says_so() {
    let proxy = ScriptedHttp::start().await;
    let with_secret = "insecure_http = true\nheaders = { X-Token = \"{{secret.KEY}}\" }";
    let (class, message) = run(&tool(&proxy, "http://0.0.0.0:1/x", with_secret)).await.unwrap_err();
    assert_eq!(class, ErrorClass::Unavailable);
    let why = "; the proxy of HTTP_PROXY was not used, because the request has a secret and is not encrypted";
    assert!(message.starts_with("the service cannot be reached") && message.ends_with(why), "{message}");
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
}

#[tokio::test]
async fn an_error_of_a_proxy_says_that_there_is_one() {
    let proxy = ScriptedHttp::start().await;
    let page = Reply::status(502).header("content-type", "text/html").body("<html>no such host</html>");
    proxy.script("/x", [page, Reply::json("7"), Reply::status(404)]);
    let plain = tool(&proxy, "http://service.invalid/x", "");
    let (class, message) = run(&plain).await.unwrap_err();
    let told = "the service answered 502 Bad Gateway; the request went through the proxy of HTTP_PROXY";
    assert_eq!((class, message.as_str()), (ErrorClass::Unavailable, told));
    assert_eq!(run(&plain).await.unwrap(), "7");
    // What a model may correct is the service's own word.
    assert_eq!(run(&plain).await.unwrap_err().1, "the service answered 404 Not Found");

    // Its tunnel is refused.
    let (_, message) = run(&tool(&proxy, "https://service.invalid/x", "")).await.unwrap_err();
    assert!(message.starts_with("the service cannot be reached"), "{message}");
    assert!(message.ends_with("; the request went through the proxy of HTTPS_PROXY"), "{message}");
}
