//! The instructions about tools and the format that the model reads.

use redial_proto::{Language, ToolOffer, TurnRequest};

/// Writes the system message: the agent's instructions, tools, format.
pub(super) fn system(request: &TurnRequest, instructions: &str) -> String {
    let tools: Vec<String> = request.tools.iter().map(|tool| described(tool, request.language)).collect();
    let format = match (request.language, tools.is_empty()) {
        (Language::En, false) => FORMAT_EN,
        (Language::En, true) => LAST_EN,
        (Language::Zh, false) => FORMAT_ZH,
        (Language::Zh, true) => LAST_ZH,
    };
    let (tools_title, format_title) = match request.language {
        Language::En => ("# Tools", "# Format"),
        Language::Zh => ("# 工具", "# 格式"),
    };
    let tools = (!tools.is_empty()).then(|| format!("{tools_title}\n\n{}", tools.join("\n\n")));
    let instructions = (!instructions.is_empty()).then(|| instructions.to_owned());
    let parts = instructions.into_iter().chain(tools).chain([format!("{format_title}\n\n{format}")]);
    parts.collect::<Vec<_>>().join("\n\n")
}

/// Says what is wrong with text that has neither an action nor an answer.
pub(super) const fn problem(language: Language, cut_off: bool) -> &'static str {
    match (language, cut_off) {
        (Language::En, false) => {
            "The text has neither an action nor an answer. Write \"Action:\" with the name of a tool and \"Action Input:\" \
             with its arguments, or \"Answer:\" with the answer."
        }
        (Language::En, true) => {
            "The text was cut off before an action or an answer. Think more briefly, then write \"Action:\" and \
             \"Action Input:\", or \"Answer:\"."
        }
        (Language::Zh, false) => {
            "回复中既没有行动也没有答案。请写 \"Action:\"（工具名）和 \"Action Input:\"（参数），或者写 \"Answer:\"（答案）。"
        }
        (Language::Zh, true) => {
            "回复在写出行动或答案之前被截断了。请简短思考，然后写 \"Action:\" 和 \"Action Input:\"，或者写 \"Answer:\"。"
        }
    }
}

/// Says what is wrong with an action that has more than one reading, or is written in a form that is not understood.
pub(super) const fn unclear(language: Language) -> &'static str {
    match language {
        Language::En => {
            "It is unclear which arguments the action has, so nothing was run. Write \"Action:\" with only the name of a \
             tool, and on the next line \"Action Input:\" with its arguments as one JSON object, such as \
             {\"name\": \"value\"}."
        }
        Language::Zh => {
            "无法确定行动的参数，因此没有执行。请在 \"Action:\" 之后只写工具名，在下一行的 \"Action Input:\" 之后用一个 JSON 对象写参数，\
             例如 {\"name\": \"value\"}。"
        }
    }
}

fn described(tool: &ToolOffer, language: Language) -> String {
    let arguments = match language {
        Language::En => "Arguments (JSON Schema)",
        Language::Zh => "参数（JSON Schema）",
    };
    let description = tool.description.trim();
    let description = if description.is_empty() { String::new() } else { format!("{description}\n") };
    format!("## {}\n{description}{arguments}: {}", tool.name, tool.parameters)
}

const FORMAT_EN: &str = "\
Work step by step. In each step write exactly this, and nothing else:

Thought: what you know and what to do next
Action: the name of one of the tools above
Action Input: its arguments, one JSON object

Then stop. The result is sent to you as \"Observation: …\", or as \"Error: …\" if the call was wrong: then correct it and \
try again. Never write an observation yourself.

As soon as you know the answer, write instead:

Thought: why you are sure
Answer: the answer for the user";

const LAST_EN: &str = "\
There are no tools any more. Write exactly this, and nothing else:

Thought: what you know
Answer: the answer for the user";

const FORMAT_ZH: &str = "\
请一步一步地工作。每一步严格按以下格式书写，不要写其他内容（标签保持英文）：

Thought: 你已知道什么，下一步要做什么
Action: 上面某一个工具的名称
Action Input: 该工具的参数，一个 JSON 对象

然后停下。结果会以 \"Observation: …\" 发给你；如果调用有误，则以 \"Error: …\" 发给你，请改正后重试。绝不要自己编写 Observation。

一旦知道答案，改为书写：

Thought: 为什么可以确定
Answer: 给用户的答案";

const LAST_ZH: &str = "\
现在没有可用的工具。严格按以下格式书写，不要写其他内容（标签保持英文）：

Thought: 你已知道什么
Answer: 给用户的答案";
