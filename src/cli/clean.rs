//! `podbench clean`'s own flags.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  podbench clean --dry-run    # what is stale; nothing is written
  podbench clean              # take it back
";

/// `podbench clean`.
#[derive(Args, Clone, Debug)]
#[command(
    before_help = EXAMPLES,
    after_help = "On this machine: ssh hosts whose pod is gone or whose seat has ended, whatever their cluster; \
                  known_hosts lines without an ssh host; dead control sockets; files of interrupted runs. In the \
                  current namespace: running seats of yours that a newer one on no lower rung has superseded. An ssh \
                  host whose cluster can't be asked is kept and said, and is a failure (exit 2) only where nothing at \
                  all could be asked. A cluster other than the current one is never asked for credentials."
)]
pub struct Clean {
    /// Say what would go, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}
