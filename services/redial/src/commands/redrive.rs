//! `redial redrive`: runs ended calls again, each as a new call. No call is redriven twice.

mod dry_run;
mod select;
mod send;

use std::process::ExitCode;

use redial_proto::CallId;

use self::select::Selection;
use crate::{
    cli::RedriveArgs,
    connect, exit,
    ids::{self, IdText, Of},
    output,
    settings::Settings,
};

/// Nothing matched, which may be because unknown outcomes need an operator's decision.
const NOTHING: &str = "no failed or cancelled call on record matches; --state unknown selects calls whose tool may have \
                       done its work";

pub(crate) async fn run(settings: &Settings, args: RedriveArgs) -> anyhow::Result<ExitCode> {
    let selection = Selection::new(calls(settings, &args.calls).await?, args.filter, &settings.tenant()?)?;
    if args.dry_run {
        return dry_run::run(settings, selection).await;
    }
    let calls = match selection {
        Selection::Named(calls) => calls,
        Selection::Filtered(filters) => {
            let mut calls = Vec::new();
            select::matching(&connect::store(settings).await?, filters, |line| calls.push(line.call)).await?;
            // In the order of their submission.
            calls.sort_unstable();
            calls
        }
    };
    if calls.is_empty() {
        output::note(NOTHING);
        return Ok(ExitCode::SUCCESS);
    }
    let tally = send::redrive(&connect::queue(settings).await?, &calls, settings.json()).await?;
    if settings.json() {
        output::note(tally.to_string());
    } else {
        output::line(tally.to_string())?;
    }
    Ok(if tally.rejected == 0 { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

/// Reads the whole ids. One that is not of a single call ends the command before any call runs again.
async fn calls(settings: &Settings, texts: &[IdText]) -> anyhow::Result<Vec<CallId>> {
    let mut calls = Vec::with_capacity(texts.len());
    for text in texts {
        calls.push(CallId(ids::resolve(settings, text, Of::Call).await?));
    }
    Ok(calls)
}
