//! `podbench attach`'s own flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, FromArgMatches as _};
use podbench_contract::ids::{Gid, Uid};
use podbench_contract::rung::Rung;

use super::{Mount, PodArgs, Pull, Size, SshArgs, values};

const ATTACH_EXAMPLES: &str = "\
Examples:
  podbench attach api-7d9f                  # that pod
  podbench attach deploy/web -c server      # a pod of a Deployment, its container `server`
  podbench attach api --max-rung full       # ask for CAP_SYS_PTRACE first
  podbench attach api --require degraded    # exit 3 unless the seat can read the target
  podbench attach api --resize 6Gi          # more memory for the target first, without a restart
  podbench attach api --dry-run             # what would land; nothing is written
  podbench attach api --check               # and log in once, end to end, with your own ssh
  podbench attach api -o json | jq .rung    # for scripts
";

/// `podbench attach`.
#[derive(Args, Clone, Debug)]
#[command(
    before_help = ATTACH_EXAMPLES,
    after_help = "A seat is an ephemeral container: the pod keeps running, and keeps the container's name until the \
                  pod is replaced."
)]
pub struct Attach {
    /// The pod, and which of its containers.
    #[command(flatten)]
    pub pod: PodArgs,
    /// The target's uid, where neither the pod nor its image says it, or says it wrongly
    #[arg(long, value_name = "UID", value_parser = values::uid, help_heading = "Seat")]
    pub target_uid: Option<Uid>,
    /// The target's gid, likewise
    #[arg(long, value_name = "GID", value_parser = values::gid, help_heading = "Seat")]
    pub target_gid: Option<Gid>,
    /// The most to ask for: full (root with CAP_SYS_PTRACE), degraded (the target's own uid and
    /// gid), seat (no view of the target); the rungs below it are still tried
    #[arg(long, value_name = "RUNG", value_parser = values::RungParser, help_heading = "Seat")]
    pub max_rung: Option<Rung>,
    /// Exit 3 unless the measured rung is at least this one
    #[arg(long, value_name = "RUNG", value_parser = values::RungParser, help_heading = "Seat")]
    pub require: Option<Rung>,
    /// The seat's image, else $PODBENCH_IMAGE, else the one of this release
    #[arg(long, value_name = "IMAGE", value_parser = values::image, help_heading = "Seat")]
    pub image: Option<String>,
    /// When the node pulls the image: IfNotPresent, Always or Never
    #[arg(
        long,
        value_name = "POLICY",
        value_enum,
        ignore_case = true,
        default_value_t,
        hide_possible_values = true,
        help_heading = "Seat"
    )]
    pub pull: Pull,
    /// Land a new seat even where one is running; its name stays in the pod for good
    #[arg(long, help_heading = "Seat")]
    pub new: bool,
    /// Mount a volume that the pod declares, by claim or volume name (repeatable)
    #[arg(
        long = "mount",
        value_name = "CLAIM[:PATH]",
        action = ArgAction::Append,
        value_parser = values::mount,
        help_heading = "Seat"
    )]
    pub mounts: Vec<Mount>,
    /// Give the target that much memory first, in place and without a restart: its limit, or
    /// REQUEST:LIMIT (6Gi, 2Gi:6Gi); what can't be done is a warning
    #[arg(long, value_name = "MEMORY", value_parser = values::memory, help_heading = "Seat")]
    pub resize: Option<Size>,
    /// Likewise processor time (2, 500m, 1:2)
    #[arg(long, value_name = "CPU", value_parser = values::cpu, help_heading = "Seat")]
    pub resize_cpu: Option<Size>,
    /// Don't land a second seat where the first one's ids turn out not to be the target's
    #[arg(long, help_heading = "Seat")]
    pub no_correct_ids: bool,
    /// Don't mount the pod's `podbench-home` volume
    #[arg(long, help_heading = "Seat")]
    pub no_seat_identity: bool,
    /// Don't try ptrace on the target: the report says "not measured"
    #[arg(long, help_heading = "Seat")]
    pub no_probe: bool,
    /// Rehearse every rung on the server, write nothing, and say what would land
    #[arg(
        long,
        value_name = "server",
        value_parser = ["server"],
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "server",
        hide_possible_values = true,
        help_heading = "Seat"
    )]
    pub dry_run: Option<String>,
    /// Where the target doesn't run, wait for its next start, at most so long (10m), and land at once;
    /// the seat ends with the target
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10m",
        value_parser = values::seconds,
        help_heading = "Seat"
    )]
    pub wait_start: Option<Duration>,
    /// Why you are there: kept in the seat's environment, for whoever reads the pod
    #[arg(long, value_name = "TEXT", value_parser = values::reason, help_heading = "Seat")]
    pub reason: Option<String>,
    /// A strategic merge patch of the seat's container, YAML or JSON (- is stdin), for what a policy
    /// asks of it: env, volumeMounts, securityContext; rehearsed like the rest
    #[arg(long, value_name = "FILE", help_heading = "Seat")]
    pub spec_patch: Option<PathBuf>,
    /// How long the seat may take to start, in seconds or as kubectl spells it (90s, 5m)
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = values::seconds, help_heading = "Seat")]
    pub timeout: Duration,
    /// Log in once with your own ssh, and exit 2 if that fails
    #[arg(long, conflicts_with_all = ["dry_run", "print_config"], help_heading = "ssh")]
    pub check: bool,
    /// The user's side of ssh.
    #[command(flatten)]
    pub ssh: SshArgs,
}

impl Attach {
    /// `podbench attach POD` and no flag: what another verb lands.
    ///
    /// # Errors
    /// When the flags have no defaults: a bug.
    pub fn plain(pod: Option<String>, target: Option<String>) -> Result<Self, clap::Error> {
        let matches = Self::augment_args(clap::Command::new("attach")).try_get_matches_from(["attach"])?;
        let mut plain = Self::from_arg_matches(&matches)?;
        plain.pod.pod = pod;
        plain.pod.target = target;
        Ok(plain)
    }

    /// Was `--dry-run` given?
    #[must_use]
    pub const fn is_dry_run(&self) -> bool {
        self.dry_run.is_some()
    }
}
