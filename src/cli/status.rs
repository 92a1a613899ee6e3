//! `podbench status`'s own flags.

use clap::Args;

use super::values;

const EXAMPLES: &str = "\
Examples:
  podbench status api                # the seats in that pod, and what they measure now
  podbench status api -c server      # those beside one container
  podbench status api -o json | jq '.seats[].state'
";

/// `podbench status`.
#[derive(Args, Clone, Debug)]
#[command(
    before_help = EXAMPLES,
    after_help = "Only seats of yours that run are entered, each by one exec; of others it says what the pod says."
)]
pub struct Status {
    /// The pod, and which of its seats.
    #[command(flatten)]
    pub pod: SeatsArgs,
}

/// A pod that has seats, and which of them are meant.
#[derive(Args, Clone, Debug)]
pub struct SeatsArgs {
    /// A pod's name or a part of it, or pod/NAME, deploy/NAME, sts/NAME, svc/NAME; where it is left
    /// out, one of those that have a seat
    #[arg(value_parser = values::text)]
    pub pod: Option<String>,
    /// Only seats beside this container
    #[arg(short = 'c', long, visible_alias = "container", value_name = "CONTAINER", value_parser = values::text)]
    pub target: Option<String>,
    /// Never ask which pod: more than one match is an error
    #[arg(long)]
    pub no_prompt: bool,
}
