//! Models behind real HTTP: requests as they arrive, responses of every kind, and failures.

mod answers;
mod failures;

use redial_llm::Model;
use redial_proto::{Delta, Failure, Message, Role, TurnReply, TurnRequest};
use redial_testkit::{Reply, ScriptedHttp};

use crate::request::{load, request, tool};

const KEY: &str = "canary-5f1c";

/// Makes a model of the given provider, behind the given server.
fn model(server: &ScriptedHttp, provider: &str, lines: &str) -> Model {
    let text = format!(
        "[models.m]\nprovider = \"{provider}\"\nmodel = \"big\"\nbase_url = \"{}\"\nkey_env = \"KEY\"\n\
         headers = {{ X-Team = \"${{TEAM}}\" }}\ninput_price = 2\noutput_price = 10\n{lines}\n",
        server.url("")
    );
    let variable = |name: &str| match name {
        "KEY" => Some(KEY.to_owned()),
        "TEAM" => Some("team-canary".to_owned()),
        _ => None,
    };
    load(&text, "", &variable).unwrap().remove(0)
}

fn asked() -> TurnRequest {
    TurnRequest {
        turn: 3,
        messages: vec![Message::text(Role::User, "How is the weather in Paris?")],
        tools: vec![tool("get_weather"), tool("订机票")],
        ..request()
    }
}

fn path(provider: &str) -> &'static str {
    if provider == "anthropic" { "/v1/messages" } else { "/chat/completions" }
}

/// Returns the model's reply if its server sends this response, and the deltas that came before it.
async fn ask(provider: &str, reply: Reply) -> (Result<TurnReply, Failure>, Vec<Delta>) {
    let server = ScriptedHttp::start().await;
    server.script(path(provider), [reply]);
    let mut deltas = Vec::new();
    let reply = model(&server, provider, "").ask(&asked(), |delta| deltas.push(delta)).await;
    (reply, deltas)
}

/// Makes a stream of events, from their data.
fn stream(events: &str) -> Reply {
    let events: Vec<_> = events.lines().map(|data| format!("data: {}\n\n", data.trim())).collect();
    let body = events.concat();
    Reply::status(200).header("content-type", "text/event-stream; charset=utf-8").body(body)
}
