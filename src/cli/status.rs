//! `podbench status`'s own flags.

use clap::Args;

use super::PodArgs;

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
    /// The pod, and which of its containers.
    #[command(flatten)]
    pub pod: PodArgs,
}
