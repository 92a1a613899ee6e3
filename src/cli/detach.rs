//! `podbench detach`'s own flags.

use clap::{ArgAction, Args};

use super::{SeatsArgs, values};

const EXAMPLES: &str = "\
Examples:
  podbench detach api                          # end every seat of yours in that pod
  podbench detach api -c server                # only those beside one container
  podbench detach api --seat podbench-2        # only that one
  podbench detach api --dry-run                # what would go; nothing is written
";

/// `podbench detach`.
#[derive(Args, Clone, Debug)]
#[command(
    before_help = EXAMPLES,
    after_help = "The seat's processes end, its ssh host, known_hosts line and control socket are removed. The container's \
                  entry stays in the pod until the pod is replaced. An ssh host is kept where nobody knows whether its \
                  seat has ended."
)]
pub struct Detach {
    /// The pod, and which of its seats.
    #[command(flatten)]
    pub pod: SeatsArgs,
    /// Only this seat (repeatable)
    #[arg(long = "seat", value_name = "NAME", action = ArgAction::Append, value_parser = values::text)]
    pub seats: Vec<String>,
    /// Also where the seat that --seat names is somebody else's; what they run in it ends with it
    #[arg(long, requires = "seats")]
    pub force: bool,
    /// Say what would go, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}
