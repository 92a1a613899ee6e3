//! `podbench list`'s own flags.

use clap::Args;

use super::values;

const EXAMPLES: &str = "\
Examples:
  podbench list                      # every seat in the namespace
  podbench list -A --mine            # mine, in every namespace
  podbench list -l app=web -o json   # those in some pods, for scripts
";

/// `podbench list`.
#[derive(Args, Clone, Debug)]
#[command(
    before_help = EXAMPLES,
    after_help = "RUNG(SPEC) is what a seat's container is authored for; `podbench status POD` measures what it may do. \
                  One list of pods answers everything; no seat is entered."
)]
pub struct List {
    /// Every namespace: needs the right to list pods in the whole cluster
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Only pods with these labels, as kubectl spells it
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = values::text)]
    pub selector: Option<String>,
    /// Only seats of the user that asks
    #[arg(long)]
    pub mine: bool,
}
