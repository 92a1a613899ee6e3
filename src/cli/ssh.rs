//! `podbench ssh`'s flags, and those of every verb that enters a seat.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use podbench_contract::rung::Rung;

use super::{PodArgs, values};

const EXAMPLES: &str = "\
Examples:
  podbench ssh api                             # a shell beside the process, in the running seat or a new one
  podbench ssh api -- ls -l \"my file\"          # several words arrive as they are, as with kubectl exec
  podbench ssh api -- 'cd /tmp && ls *.log'    # a single word is a line for the seat's shell, as with ssh
  podbench ssh api -N -L 8080:localhost:8080   # the pod's port 8080, until ctrl-C
  podbench ssh api -t -- podbench dbg          # a program that needs a terminal
";

/// `podbench ssh`.
#[derive(Args, Clone, Debug)]
#[command(
    before_help = EXAMPLES,
    after_help = "podbench becomes ssh, so the exit code is the command's own, and 255 is ssh's. Before that: 2 the \
                  cluster or the input said no, 124 a deadline passed, 130 interrupted. -o is podbench's own and \
                  shapes a failure alone; ssh's options go through --ssh-arg. A remote forward (-R) would listen in \
                  the pod, and the seat refuses it."
)]
pub struct Ssh {
    /// The pod, and which of its containers.
    #[command(flatten)]
    pub pod: PodArgs,
    /// Listen here and connect from the pod, as ssh spells it (repeatable)
    #[arg(short = 'L', value_name = "[BIND:]PORT:HOST:PORT", action = ArgAction::Append, value_parser = values::text, help_heading = "ssh")]
    pub local_forwards: Vec<String>,
    /// Listen here as a SOCKS proxy that connects from the pod (repeatable)
    #[arg(short = 'D', value_name = "[BIND:]PORT", action = ArgAction::Append, value_parser = values::text, help_heading = "ssh")]
    pub dynamic_forwards: Vec<String>,
    /// Run no command: for forwards
    #[arg(short = 'N', help_heading = "ssh", conflicts_with = "command")]
    pub no_command: bool,
    /// Ask for a terminal though there is a command; twice: though there is none here
    #[arg(short = 't', action = ArgAction::Count, help_heading = "ssh")]
    pub tty: u8,
    /// One more word for ssh, in front of the host (repeatable): --ssh-arg=-v
    #[arg(long = "ssh-arg", value_name = "WORD", action = ArgAction::Append, allow_hyphen_values = true, value_parser = values::text, help_heading = "ssh")]
    pub ssh_args: Vec<String>,
    /// Which seat, and as whom.
    #[command(flatten)]
    pub seat: SeatArgs,
    /// A command instead of a shell
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
}

/// How a seat is entered, or landed where none of the caller's runs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Seat")]
pub struct SeatArgs {
    /// Only enter a seat that runs; nothing is written to the cluster
    #[arg(long)]
    pub no_attach: bool,
    /// The image of a new seat, else $PODBENCH_IMAGE, else the one of this release
    #[arg(long, value_name = "IMAGE", value_parser = values::image)]
    pub image: Option<String>,
    /// The most to ask for, as in attach: full, degraded or seat
    #[arg(long, value_name = "RUNG", value_parser = values::RungParser)]
    pub max_rung: Option<Rung>,
    /// How long a new seat may take to start, in seconds or as kubectl spells it (90s, 5m)
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = values::seconds)]
    pub timeout: Duration,
    /// The key to let in, private or .pub, else the first that attach would take
    #[arg(long, value_name = "KEY")]
    pub identity: Option<PathBuf>,
    /// The login, else the one that the seat measured
    #[arg(long, value_name = "LOGIN", value_parser = values::login)]
    pub ssh_user: Option<String>,
}
