//! What `redial tools` is told.

use clap::Subcommand;
use redial_proto::WorkerIdentity;

#[derive(Subcommand, Debug)]
pub(crate) enum ToolsCommand {
    /// Remove from the registry a tool that no live worker has
    ///
    /// New calls of it are refused then, and agents are not offered it. Calls that wait for it end at their deadline.
    Forget {
        /// The tool's name
        tool: String,
    },
    /// Let a worker identity serve a tool as it registered it
    ///
    /// `redial tools` shows what waits for this, and `redial tools --json` the whole specification. Its workers get calls of the tool within seconds. Whoever serves a tool sees the arguments of its calls.
    Accept {
        /// The tool's name
        tool: String,
        /// Worker identity; needed if several wait
        #[arg(long, value_name = "NAME")]
        identity: Option<WorkerIdentity>,
        /// Fingerprint of the change, as `redial tools` shows it; another change is not accepted
        #[arg(long, value_name = "FINGERPRINT")]
        fingerprint: String,
    },
}
