//! `podbench cp`'s flags.

use clap::Args;

use super::{SeatArgs, values};

const EXAMPLES: &str = "\
Examples:
  podbench cp api:/tmp/profile.out .               # a file of the seat's, into this folder
  podbench cp ./fix.py api:/tmp/                   # the other way
  podbench cp shop/api:/proc/1/root/app/conf conf  # a folder of the target's own files (its pid is in the report)
  podbench cp api:core.1 cores/                    # a path without / in front is one of the seat's home
";

/// `podbench cp`.
#[derive(Args, Clone, Debug)]
#[command(
    before_help = EXAMPLES,
    after_help = "One side is [NAMESPACE/]POD:PATH, the other a local path (./a:b where it has a colon). It goes over \
                  your own sftp through the seat, so the pod needs no tar, and what arrives is whole: it is written \
                  beside its destination and renamed. A folder is copied with the files and folders in it; \
                  symbolic links, FIFOs and sockets in it are left out and named. PATH is the seat's: the target's \
                  files are below /proc/PID/root, where an absolute symbolic link leads into the seat."
)]
pub struct Cp {
    /// What is copied
    #[arg(value_name = "SRC", value_parser = values::text)]
    pub source: String,
    /// Where to: into it where it is a folder
    #[arg(value_name = "DST", value_parser = values::text)]
    pub destination: String,
    /// The container to look at, as in attach
    #[arg(short = 'c', long, visible_alias = "container", value_name = "CONTAINER", value_parser = values::text)]
    pub target: Option<String>,
    /// Never ask which pod: more than one match is an error
    #[arg(long)]
    pub no_prompt: bool,
    /// Which seat, and as whom.
    #[command(flatten)]
    pub seat: SeatArgs,
}
