//! What `redial forget` is told.

use clap::Args;

/// What is about an erasure, and not about the list.
const WHAT: [&str; 4] = ["conversation", "dry_run", "yes", "cancel"];

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").args(["conversation", "tenant", "list"]).required(true).multiple(true))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ForgetArgs {
    /// Conversation to erase
    #[arg(long, value_name = "ID")]
    pub(crate) conversation: Option<String>,
    /// Tenant of the conversation [default: default]; without a conversation, everything of the tenant is erased
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// Only count what would be erased
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Erase without asking
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    /// Cancel tasks and calls that have not ended, and wait for their end
    #[arg(long)]
    pub(crate) cancel: bool,
    /// List what was erased, newest first
    #[arg(long, conflicts_with_all = WHAT)]
    pub(crate) list: bool,
    /// With --list: maximum number of entries [default: 1000]
    #[arg(long, value_name = "N", requires = "list", conflicts_with_all = WHAT, value_parser = crate::cli::values::number(1..=u32::MAX))]
    pub(crate) limit: Option<u32>,
    /// With --list: whole values, and all that was counted
    #[arg(long, requires = "list", conflicts_with_all = WHAT)]
    pub(crate) wide: bool,
}
