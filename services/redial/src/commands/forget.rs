//! `redial forget`: erases a conversation, or everything of a tenant.

mod list;
mod send;

use std::{
    io::{BufRead, IsTerminal},
    process::ExitCode,
};

use redial_proto::{ApiError, Code, ForgetCounts, ForgetReply, OpenWork, Tenant};

use self::send::Erasure;
use crate::{cli::ForgetArgs, connect, exit, output, settings::Settings, timeline::totals};

pub(crate) async fn run(settings: &Settings, args: ForgetArgs) -> anyhow::Result<ExitCode> {
    if args.list {
        return list::run(settings, &args).await;
    }
    let queue = connect::queue(settings).await?;
    let name = name(queue.tenant(), &args);
    let erasure = Erasure::new(&queue, &args);
    let counted = erasure.count().await?;
    if args.dry_run {
        return told(settings, &name, &counted);
    }
    let ForgetReply { counts, open, .. } = counted;
    if counts == ForgetCounts::default() && !counted.more {
        output::note(format!("nothing of {name} is on record"));
        return Ok(ExitCode::SUCCESS);
    }
    if open != OpenWork::default() && !args.cancel {
        return Err(has_open_work(&name, open).into());
    }
    if !args.yes && !confirmed(&args, &name, &counted)? {
        output::note("nothing was erased");
        return Ok(ExitCode::from(exit::FAILED));
    }
    let erased = erasure.erase(&counts).await?;
    if settings.json() {
        output::json(&erased)?;
    } else {
        output::line(format!("{name} is erased: {}", sentence(&erased.counts)))?;
        output::note("backups and logs may still hold parts of it: docs/OPERATIONS.md, Erasing");
    }
    Ok(ExitCode::SUCCESS)
}

fn name(tenant: &Tenant, args: &ForgetArgs) -> String {
    output::plain(&match &args.conversation {
        Some(conversation) => format!("conversation {conversation} of tenant {tenant}"),
        None => format!("tenant {tenant}"),
    })
}

/// Prints a dry run.
fn told(settings: &Settings, name: &str, counted: &ForgetReply) -> anyhow::Result<ExitCode> {
    let ForgetReply { counts, open, more, .. } = *counted;
    if settings.json() {
        let mut line = serde_json::json!({ "counts": counts, "open": open });
        if more {
            line["more"] = true.into();
        }
        output::json(&line)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(would_be_erased(name, counted))?;
    if open != OpenWork::default() {
        output::note(format!("not ended: {}; --cancel cancels it first", open_work(open)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks on a terminal; elsewhere it needs `--yes`. What is asked for is the name, because nothing brings it back.
fn confirmed(args: &ForgetArgs, name: &str, counted: &ForgetReply) -> anyhow::Result<bool> {
    let summary = would_be_erased(name, counted);
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        let message = format!("{summary}, and nothing brings it back; nothing was erased: add --yes to erase it");
        return Err(ApiError::new(Code::InvalidValue, message).into());
    }
    let wanted = args.conversation.as_deref().or(args.tenant.as_deref()).unwrap_or_default();
    output::note(format!("{summary}, and nothing brings it back"));
    output::note_text(&format!("to erase it, type its name ({}): ", output::plain(wanted)));
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(answer.trim() == wanted)
}

fn would_be_erased(name: &str, counted: &ForgetReply) -> String {
    let more = if counted.more { ", or more," } else { "" };
    format!("{name}: {}{more} would be erased", sentence(&counted.counts))
}

fn has_open_work(name: &str, open: OpenWork) -> ApiError {
    let message = format!(
        "{name} has work that has not ended ({}), so nothing was erased; wait for its end, or add --cancel to cancel it first",
        open_work(open)
    );
    ApiError::new(Code::WrongState, message)
}

fn open_work(open: OpenWork) -> String {
    format!("{}, {}", totals::count(open.tasks, "task"), totals::count(open.calls, "call"))
}

/// Names everything that there is one of at least.
fn sentence(counts: &ForgetCounts) -> String {
    let parts = [
        (counts.tasks, "task"),
        (counts.messages, "message"),
        (counts.steps, "step"),
        (counts.calls, "call"),
        (counts.model_turns, "model turn"),
        (counts.attempts, "attempt"),
        (counts.late_reports, "late report"),
        (counts.dead_letters, "dead letter"),
        (counts.keys, "key"),
        (counts.tokens, "token"),
    ];
    let mut parts: Vec<String> =
        parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| totals::count(n, what)).collect();
    if counts.statistics > 0 {
        parts.push(format!("{} of statistics", totals::count(counts.statistics, "row")));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_there_is_is_told() {
        assert_eq!(sentence(&ForgetCounts::default()), "nothing");
        let counts = ForgetCounts {
            tasks: 1,
            messages: 1_204,
            calls: 2,
            model_turns: 1,
            statistics: 3,
            ..ForgetCounts::default()
        };
        assert_eq!(sentence(&counts), "1 task, 1,204 messages, 2 calls, 1 model turn, 3 rows of statistics");
    }

    #[test]
    fn a_number_that_was_not_counted_to_its_end_says_so() {
        let counts = ForgetCounts { calls: 100_000, ..ForgetCounts::default() };
        let more = ForgetReply { counts, more: true, ..ForgetReply::default() };
        assert_eq!(would_be_erased("tenant acme", &more), "tenant acme: 100,000 calls, or more, would be erased");
    }
}
