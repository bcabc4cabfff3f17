//! A model and how it is asked.

use std::{fmt, sync::Arc};

use redial_proto::{Delta, Failure, ToolSpec, TurnReply, TurnRequest, TurnUsage, estimate};
use redial_redaction::Secrets;

use crate::{
    api::Api,
    http::Endpoint,
    limit,
    piece::{Piece, Watch},
    react,
    script::Script,
    settings::Settings,
};

/// A model of `models.toml`. Cheap to clone.
#[derive(Clone)]
pub struct Model {
    pub(crate) name: String,
    pub(crate) spec: ToolSpec,
    pub(crate) concurrency: Option<u32>,
    /// None: what a turn costs is unknown.
    pub(crate) prices: Option<Prices>,
    pub(crate) backend: Arc<Backend>,
}

/// US dollars per million tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prices {
    pub(crate) input: f64,
    pub(crate) output: f64,
}

/// What answers for a model.
pub(crate) enum Backend {
    Chat(Box<ChatModel>),
    Script(Script),
}

/// A model behind a chat endpoint.
pub(crate) struct ChatModel {
    pub(crate) api: Api,
    /// Tools are offered and called in plain text, as ReAct.
    pub(crate) react: bool,
    pub(crate) settings: Settings,
    pub(crate) endpoint: Endpoint,
}

impl Model {
    /// Returns the name by which agents refer to it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the tool that its worker registers, in pool `models`.
    pub fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    /// Returns the requests that one worker makes at the same time; `None` means as many as it has permits.
    pub fn concurrency(&self) -> Option<u32> {
        self.concurrency
    }

    /// Returns what must not appear in replies, errors or results of tools: its key and headers.
    pub fn secrets(&self) -> Secrets {
        match &*self.backend {
            Backend::Chat(chat) => chat.endpoint.secrets.clone(),
            Backend::Script(_) => Secrets::default(),
        }
    }

    /// Returns why every turn would fail now, although nothing is wrong in the file: a variable that is not set.
    pub fn warning(&self) -> Option<String> {
        let Backend::Chat(chat) = &*self.backend else { return None };
        let failure = chat.endpoint.headers.as_ref().err()?;
        let remedy = "it fails until its worker is started with it";
        Some(format!("model {:?}: {}; {remedy}", self.name, failure.message))
    }

    /// Asks for one turn. `watch` receives pieces of the answer while it is being written, if the provider streams it.
    /// There is no time limit: the caller drops the future at its deadline.
    pub async fn ask(&self, request: &TurnRequest, mut watch: impl FnMut(Delta) + Send) -> Result<TurnReply, Failure> {
        let turn = request.turn;
        let mut watch =
            |piece: Piece| watch(Delta { turn, text: piece.text, thought: piece.thought, ..Delta::default() });
        let reply = match &*self.backend {
            Backend::Chat(chat) => chat.ask(request, &mut watch).await,
            Backend::Script(script) => {
                script.ask(request, &mut watch).await.map(|reply| with_estimates(request, reply))
            }
        };
        reply.map(|mut reply| {
            reply.usage = self.priced(reply.usage);
            limit::reply(reply)
        })
    }

    /// Adds what the turn cost, as far as it can be known.
    fn priced(&self, usage: TurnUsage) -> TurnUsage {
        let cost = |input, output| self.prices.and_then(|prices| prices.cost_micros(input, output));
        let cost_micros = cost(usage.input_tokens, usage.output_tokens);
        let input = usage.input_tokens.or(usage.estimated_input_tokens);
        let output = usage.output_tokens.or(usage.estimated_output_tokens);
        let estimated_cost_micros = if cost_micros.is_some() { None } else { cost(input, output) };
        TurnUsage { cost_micros, estimated_cost_micros, ..usage }
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("spec", &self.spec)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

impl ChatModel {
    async fn ask(&self, request: &TurnRequest, watch: Watch<'_>) -> Result<TurnReply, Failure> {
        let as_text = self.react.then(|| react::chat(request));
        let chat = as_text.as_ref().unwrap_or(request);
        let mut body = self.api.request(chat, &self.settings);
        if self.react {
            body[self.api.stop_field()] = react::STOP.into();
        }
        // Before the text is read as ReAct: what is left out of it was written, too.
        let mut reply = with_estimates(chat, self.endpoint.ask(self.api, chat, &body, watch).await?);
        if reply.model.is_empty() {
            reply.model.clone_from(&self.settings.model);
        }
        Ok(if self.react { react::reply(request, reply) } else { reply })
    }
}

/// Adds estimates of the tokens that the provider did not tell.
fn with_estimates(request: &TurnRequest, mut reply: TurnReply) -> TurnReply {
    let mut usage = reply.usage;
    usage.estimate(|| estimate::of_request(request), || estimate::of_reply(&reply));
    reply.usage = usage;
    reply
}

impl Prices {
    /// Returns the cost in millionths of a dollar. Dollars per million tokens equal millionths of a dollar per token.
    /// `None` if a number of tokens that has a price is unknown.
    fn cost_micros(self, input: Option<u64>, output: Option<u64>) -> Option<u64> {
        #[expect(clippy::cast_precision_loss, reason = "numbers of tokens are far below 2^52")]
        let part = |tokens: Option<u64>, price: f64| match tokens {
            Some(tokens) => Some(tokens as f64 * price),
            None => (price == 0.0).then_some(0.0),
        };
        let cost = part(input, self.input)? + part(output, self.output)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; `as` saturates")]
        return Some(cost.round() as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_in_millionths_of_a_dollar() {
        let (priced, free) = (Prices { input: 2.5, output: 10.0 }, Prices { input: 0.0, output: 0.0 });
        assert_eq!(priced.cost_micros(Some(1000), Some(200)), Some(4500));
        assert_eq!(free.cost_micros(Some(1000), Some(200)), Some(0));
        assert_eq!(priced.cost_micros(Some(1000), None), None);
        assert_eq!(Prices { output: 0.0, ..priced }.cost_micros(Some(1000), None), Some(2500));
        assert_eq!(free.cost_micros(None, None), Some(0));
    }
}
