//! Documents to damage: good ones, and damaged ones that are worth damaging further.

use serde_json::json;

pub(crate) const JOBS: [&str; 2] = [
    r#"{"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,"tool":"get_weather","bytes":120}"#,
    r#"{"call":"01a1f847531074f8a38521cea4297f44","attempt":4294967295,"tool":"订机票"}"#,
];

pub(crate) const RESULTS: [&str; 3] = [
    r#"{"worker":"box-1a2b3c","reports":[
        {"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,"duration_ms":12,"output":{"a":[1,null,1e400000,"\u0000\ud800"]}},
        {"call":"01a1f847-5310-74f8-a385-21cea4297f45","attempt":2,"duration_ms":0,"output":null},
        {"call":"01a1f847-5310-74f8-a385-21cea4297f46","attempt":3,"duration_ms":9,"error":{"class":"invalid_arguments",
         "message":"no","details":[{"path":"/date","rule":"format","sent":"明天","allowed":"YYYY-MM-DD","hint":"2026-11-20"}],
         "retry_after_ms":5000,"effect_possible":false}}]}"#,
    r#"{"worker":"w","reports":[]}"#,
    r#"{"worker":"w","reports":[1,"x",{"call":1},{"output":1,"error":{"class":"timeout","message":""}}]}"#,
];

pub(crate) const CONTROL: [&str; 4] = [
    r#"{"claim":"5f0c9a52-7a3c-4a53-8f5f-0b1d0f2c9b11","worker":"box-1a2b3c","jobs":[
        {"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,"tool":"a"},
        {"call":"01a1f847-5310-74f8-a385-21cea4297f45","attempt":2,"tool":"a"}]}"#,
    r#"{"worker":"box-1a2b3c","running":[{"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1}],"slots":8,"draining":true}"#,
    r#"{"worker":"box-1a2b3c","jobs":[{"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,
        "claim":"5f0c9a52-7a3c-4a53-8f5f-0b1d0f2c9b11"}]}"#,
    r#"{"call":"01a1f847-5310-74f8-a385-21cea4297f44"}"#,
];

pub(crate) const SUBMISSIONS: [&str; 3] = [
    r#"{"tool":"get_weather","arguments":{"location":"Paris","days":2},"key":"k-1","conversation":"c",
        "timeout_ms":5000,"retry":{"max_attempts":3,"initial_ms":100,"factor":2.5,"cap_ms":1000,"deadline_ms":60000},"notify":true}"#,
    r#"{"calls":[{"tool":"a","arguments":{}},{"tool":"b","arguments":"{\"x\":1,}","key":"k"},{"tool":"c"},7]}"#,
    r#"{"tool":"订机票","arguments":"{'日期':'明天'}"}"#,
];

pub(crate) const TASKS: [&str; 3] = [
    r#"{"input":"订一张机票","agent":{"model":"small","fallback_model":"large","system":"be brief",
        "tools":["get_*","book_flight","*a*b*"],"policy":"fallback","max_corrections":3,"fallback_after":0,"cut_off":"continue","language":"zh",
        "budgets":{"turns":5,"corrections":2,"tool_calls":9,"tokens":1000,"cost_usd":0.5,"seconds":60},
        "context_tokens":2000,"result_bytes":300,"max_tokens":100,"temperature":0.5,"templates":{"timeout.message":"{tool} is slow"}},
        "conversation":"c-1","key":"k"}"#,
    r#"{"input":"hello","agent":"clerk"}"#,
    r#"{"model":"m","tools":["*"]}"#,
];

pub(crate) const TURNS: [&str; 4] = [
    r#"{"text":"I look","thought":"hm","calls":[{"name":"get_weather","arguments":"{\"city\":1"}],
        "finish":"tool_calls","problem":"cut off","usage":{"input_tokens":3,"output_tokens":4,"cost_micros":5},
        "model":"m","provider":{"kind":"anthropic","thinking":[]}}"#,
    r#"{"task":"01a1f847-5310-74f8-a385-21cea4297f44","turn":1,"messages":[
        {"role":"system","content":"s"},{"role":"user","content":"u","by_redial":true},
        {"role":"assistant","calls":[{"id":"c2_1","tool":"t","arguments":"{}"}],"thought":"x"},
        {"role":"tool","content":"{}","call_id":"c2_1","tool":"t","class":"timeout"}],
        "tools":[{"name":"t","parameters":{"type":"object"},"polling":true,"repairs":false}],
        "language":"zh","max_tokens":9,"temperature":1.0,"trimmed":{"tokens":1,"shortened":2,"left_out":3}}"#,
    r#"{"turn":2,"text":"a","thought":"b"}"#,
    r#"{"calls":[{"name":"t","arguments":"{}"}],"finish":"length","call_cut_off":true,
        "usage":{"output_tokens":4,"estimated_input_tokens":9,"estimated_cost_micros":5}}"#,
];

pub(crate) const TO_WORKERS: [&str; 3] = [
    r#"{"lease_ms":15000,"grants":[{"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1,"tool":"t",
        "arguments":{"a":"\ud83d\ude00"},"timeout_ms":1000,"effect":"keyed","idempotency_key":"k","conversation":"c",
        "task":"01a1f847-5310-74f8-a385-21cea4297f45","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}]}"#,
    r#"{"lost":[{"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1}],"cancelled":[],"register":true}"#,
    r#"{"ingested":[{"call":"01a1f847-5310-74f8-a385-21cea4297f44","attempt":1}],"cancelled":[]}"#,
];

pub(crate) const REGISTRATIONS: [&str; 1] = [
    r##"{"worker":"box-1a2b3c","started_at":"2026-11-20T12:00:00Z","slots":8,"version":"0.1.0","tools":[
        {"name":"get_weather","description":"The weather.","parameters":{"type":"object","properties":{
         "city":{"type":"string","pattern":"^[A-Z]+$"},"days":{"type":"integer","minimum":1},"when":{"$ref":"#/$defs/date"}},
         "required":["city"],"$defs":{"date":{"type":"string","format":"date"}}},"effect":"read","pool":"default",
         "timeout_ms":30000,"retry":{"initial_ms":500,"factor":2.0,"cap_ms":60000,"max_attempts":6,"deadline_ms":3600000},
         "polling":true,"sequential":false,"repairs":true}]}"##,
];

/// The texts that the crate of the arguments is tested with.
pub(crate) fn arguments() -> Vec<Vec<u8>> {
    let corpus = include_str!("../../../crates/arguments/tests/arguments/corpus.txt");
    let texts = corpus.lines().filter_map(|line| line.strip_prefix('>'));
    texts.map(|text| text.trim_start().replace('⏎', "\n").into_bytes()).collect()
}

pub(crate) const NAMES: [&str; 7] =
    ["get_weather", "Get_Weather", "get wether", "订 机 票", "GETTIME", "functions.get_weather", "poll-job:0"];

pub(crate) const REACT: [&str; 8] = [
    "Thought: I look.\nAction: get_weather\nAction Input: {\"city\": \"Paris\"}\nObservation: sun\nThought: done\nAnswer: sun",
    "Action: get_weather\nAction Input: {\"city\": \"Paris\"}\nAction: get_weather\nAction Input: {\"city\": \"Rome\"}",
    "**Thought:** hm\n**Action:** get_weather\n**Action Input:**\n```json\n{\"city\": \"Paris\",}\n```",
    "思考：查一下\n行动：订机票\n行动输入：{\"日期\"：\"明天\"}",
    "action：get_weather\naction input：{'city': 'Paris'",
    "Answer: the label \"Action:\" stands before a tool",
    "Thought: no tool is needed.\nFinal Answer: 42",
    "It rains.",
];

pub(crate) const OPENAI: [&str; 6] = [
    r#"{"id":"x","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,
        "reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}},
        {"id":"b","type":"function","function":{"name":"订机票","arguments":{"x":1}}}]}}],
        "usage":{"prompt_tokens":3,"completion_tokens":4},"model":"m"}"#,
    r#"{"choices":[{"finish_reason":"length","message":{"content":[{"type":"text","text":"<think>a</think>It rai"}],"refusal":null}}]}"#,
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"It \"}}]}\n\n\
     data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"\"}}]}}]}\r\n\r\n\
     : a comment\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"city\\\":\"}}]}}]}\n\n\
     data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
    "data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n",
    r#"{"error":{"message":"Rate limit","type":"rate_limit_error","code":"429"}}"#,
    "{\"message\":{\"content\":\"ollama\"}}",
];

pub(crate) const ANTHROPIC: [&str; 4] = [
    r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},
        {"type":"text","text":"I look"},{"type":"tool_use","id":"t1","name":"get_weather","input":{"city":"Paris"}}],
        "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4},"model":"m"}"#,
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":3}}}\n\n\
     event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
     event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"It\"}}\n\n\
     data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"get_weather\",\"input\":{}}}\n\n\
     data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"city\\\"\"}}\n\n\
     data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":9}}\n\n\
     data: {\"type\":\"message_stop\"}\n\n",
    r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    "data: {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"x\"}}\n\n",
];

macro_rules! demo {
    ($file:literal) => {
        include_bytes!(concat!("../../../examples/demo/", $file)).to_vec()
    };
}

/// Schemas of tools, and some that would take for ever.
pub(crate) fn schemas() -> Vec<Vec<u8>> {
    let twice = json!({"properties": {"a": {"$ref": "#"}}});
    let filter = |op: &str| json!({"properties": {"op": {"const": op}, "of": {"items": {"$ref": "#/$defs/F"}}}, "required": ["op"]});
    let level =
        |n: usize| json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}, {"$ref": format!("#/$defs/d{}", n + 1)}]});
    let mut levels: serde_json::Map<String, serde_json::Value> = (0..34).map(|n| (format!("d{n}"), level(n))).collect();
    levels.insert("d34".to_owned(), json!({"type": "object"}));
    let schemas = [
        json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}, "op": {"enum": ["and", "or"]}},
            "required": ["n"], "additionalProperties": false}),
        json!({"allOf": [twice, twice], "properties": {"n": {"type": "integer"}}}),
        json!({"$dynamicAnchor": "x", "anyOf": [{"properties": {"a": {"$dynamicRef": "#x"}}}, {"items": {"$dynamicRef": "#x"}}]}),
        json!({"properties": {"a": {"$ref": "#/$defs/F"}}, "$defs": {"F": {"oneOf": [filter("and"), filter("or"), {"type": "integer"}]}}}),
        json!({"$ref": "#/$defs/d0", "$defs": levels}),
        json!({"properties": {"n": {"pattern": "^(a{1,50}){1,50}$"}}, "patternProperties": {"^a": {"not": {"uniqueItems": true}}},
            "propertyNames": {"maxLength": 5}, "unevaluatedProperties": false, "dependentSchemas": {"a": {"minProperties": 2}}}),
        json!({"if": {"required": ["a"]}, "then": {"properties": {"a": {"contains": {"$ref": "#"}}}}, "else": {"$ref": "#/$defs/x"},
            "$defs": {"x": {"prefixItems": [true], "items": false, "unevaluatedItems": {"$ref": "#"}}}}),
    ];
    schemas.iter().map(|schema| schema.to_string().into_bytes()).collect()
}

pub(crate) fn agents() -> Vec<Vec<u8>> {
    vec![demo!("agents.toml"), b"[agents.a]\nmodel = \"m\"\nbudgets = { turns = 3, cost_usd = 0.5 }\n".to_vec()]
}

const MODELS: &str = r#"
[models.played]
provider = "script"
script = "rules.toml"

[models.asked]
provider = "openai"
model = "m"
base_url = "http://127.0.0.1:1/v1"
headers = { X-Team = "${TEAM}-a" }
profile = "qwen"
overrides = { calls = "one", stream_usage = false }
timeout = "90s"
retry = { initial = "1s", factor = 3, cap = "30s", max_attempts = 4, deadline = "10m" }
temperature = 0.2
input_price = 0.4
extra = { top_p = 0.9, more = { deep = [1, 2] } }
"#;

pub(crate) fn models() -> Vec<Vec<u8>> {
    vec![MODELS.as_bytes().to_vec()]
}

pub(crate) fn scripts() -> Vec<Vec<u8>> {
    vec![
        demo!("scripts/clerk.toml"),
        demo!("scripts/planner.toml"),
        demo!("scripts/small-poet.toml"),
        b"style = \"react\"\n[[rule]]\nwhen = { class = \"unknown_tool\" }\ntext = \"Thought: t\\nAction: a\\nAction Input: {}\"\n"
            .to_vec(),
    ]
}

pub(crate) fn tools() -> Vec<Vec<u8>> {
    vec![demo!("tools/tools.toml")]
}
