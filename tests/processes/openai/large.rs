//! Responses whose calls have large arguments and outputs.

use std::path::PathBuf;

use redial_proto::ToolEffect;
use redial_testkit::{Stack, TestGateway};
use redial_worker::{Tool, ToolError};
use serde_json::{Value, json};

use super::{
    fixture::{Fixture, calls, says},
    retries::create,
};

const CALLS: usize = 20;
const BYTES: usize = 150_000;

async fn large(arguments: Value) -> Result<Value, ToolError> {
    Ok(json!(format!("{}{}", arguments["n"], "x".repeat(BYTES))))
}

async fn read(gateway: &TestGateway, path: &str) -> String {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.get(format!("{}{path}", gateway.url)).send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn large_outputs_are_cut_alike_at_every_gateway_and_name_their_calls() {
    let asked: Vec<(&str, Value)> = (0..CALLS).map(|n| ("large", json!({"n": n}))).collect();
    let tool = Tool::new("large", large).describe("Says much.").effect(ToolEffect::Read);
    let replies = [calls("Let me look.", &asked), says("Done.")];
    let fixture = Fixture::over(Stack::start().await, PathBuf::new(), vec![tool], replies).await;
    let [one, two] = &*fixture.gateways else { panic!("two gateways") };
    let live = create(one, &json!({"stream": true})).send().await.unwrap().text().await.unwrap();
    let id = live.split("\"id\":\"").find(|rest| rest.starts_with("resp_")).unwrap().split('"').next().unwrap();
    let path = format!("/v1/responses/{id}");
    assert_eq!(read(two, &format!("{path}?stream=true")).await, live, "the same events with the same numbers");

    let whole = read(one, &path).await;
    assert!(whole.len() < 1_200_000, "{} bytes", whole.len());
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let items = whole["output"].as_array().unwrap();
    let outputs: Vec<&str> = items.iter().filter_map(|item| item["output"].as_str()).collect();
    assert_eq!((outputs.len(), &items.last().unwrap()["content"][0]["text"]), (CALLS, &json!("Done.")));
    let mut named = std::collections::BTreeSet::new();
    for output in outputs {
        let (shown, address) = output
            .split_once("… (cut: of 150003 bytes; GET ")
            .or_else(|| output.split_once("… (cut: of 150004 bytes; GET "))
            .unwrap();
        let call: Value = serde_json::from_str(&read(two, address.split(' ').next().unwrap()).await).unwrap();
        assert!(call["output"].to_string().starts_with(shown) && shown.len() <= 64 * 1024, "{shown}");
        named.insert(call["call"].to_string());
    }
    assert_eq!(named.len(), CALLS);
    fixture.close().await;
}
