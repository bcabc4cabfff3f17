//! Tokens and money that no provider told.

use redial_proto::{TaskCode, TaskState, Usage};

use crate::play::{Play, agent, runs};

#[test]
fn estimates_count_for_the_budgets() {
    let estimate = Usage {
        input_tokens: 90,
        output_tokens: 30,
        cost_micros: Some(5_000),
        estimated_input_tokens: 90,
        estimated_output_tokens: 30,
        estimated_cost_micros: 5_000,
        turns_without_price: 0,
    };
    let (tokens, cost) = (Some(100), Some(0.005));
    for (tokens, cost_usd, code) in [(tokens, None, TaskCode::TokensExhausted), (None, cost, TaskCode::CostExhausted)] {
        let mut agent = agent();
        (agent.budgets.tokens, agent.budgets.cost_usd) = (tokens, cost_usd);
        let mut play = Play::new(agent.clone());
        play.usage = estimate;
        play.start("go");
        play.replies(vec![runs("a", "{}")]);
        play.ends(1, Ok("1"));
        play.says("that was it");
        assert_eq!(play.end(), (TaskState::Failed, code));
        assert_eq!(play.task.usage().estimated_tokens(), 240, "the last answer included");

        let mut before = Play::new(agent);
        (before.usage, before.rules) = (estimate, 0);
        before.start("go");
        before.replies(vec![runs("a", "{}")]);
        before.ends(1, Ok("1"));
        assert!(before.step.turn.as_ref().unwrap().tools, "the first rules knew no estimates");
    }
}

#[test]
fn a_limit_of_money_is_not_kept_by_a_model_without_a_price() {
    let unpriced = Usage { input_tokens: 10, output_tokens: 5, turns_without_price: 1, ..Usage::default() };
    for (cost_usd, tools) in [(Some(1.0), false), (None, true)] {
        let mut agent = agent();
        agent.budgets.cost_usd = cost_usd;
        let mut play = Play::new(agent);
        play.usage = unpriced;
        play.start("go");
        play.replies(vec![runs("a", "{}")]);
        play.ends(1, Ok("1"));
        assert_eq!(play.step.turn.as_ref().unwrap().tools, tools);
        if cost_usd.is_some() {
            play.says("that was it");
            assert_eq!(play.end(), (TaskState::Failed, TaskCode::CostUnknown));
            let message = play.outcome.unwrap().message.unwrap();
            assert!(message.contains("input_price") && message.contains("models.toml"), "{message}");
        }
    }
}
