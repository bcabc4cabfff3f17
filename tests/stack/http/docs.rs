//! The page to try the API.

use redial_test_stack::Stack;
use reqwest::Method;

use super::client::{Answer, Http};

#[tokio::test]
async fn the_page_is_served_with_all_that_it_loads_and_runs_no_script_from_elsewhere() {
    let stack = Stack::start().await;
    let http = Http::wanting_tokens(&stack).await;
    let page = http.get("/docs").await;
    assert_eq!((page.status, page.headers["content-type"].to_str().unwrap()), (200, "text/html; charset=utf-8"));
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    // A script or style within the page would not run under this policy.
    assert!(!page.text.contains("<style") && !page.text.contains(" on"), "{}", page.text);
    let loaded: Vec<&str> = page.text.split('"').filter(|part| part.starts_with('/')).collect();
    assert_eq!(loaded, ["/docs/page.css", "/docs/page.js", "/openapi.json"]);
    for (path, media) in
        loaded.iter().zip(["text/css; charset=utf-8", "text/javascript; charset=utf-8", "application/json"])
    {
        let file = http.get(path).await;
        assert_eq!((file.status, file.headers["content-type"].to_str().unwrap()), (200, media), "{path}");
        assert_eq!(file.headers["x-content-type-options"], "nosniff");
    }
    assert!(!page.text.contains("http://") && !page.text.contains("https://"), "{}", page.text);
    let head = Answer::of(http.request(Method::HEAD, "/docs")).await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
    stack.finish().await;
}
