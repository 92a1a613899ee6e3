//! The command line: these types are the help. Flags are spelled as kubectl spells them; a verb or
//! flag is listed here when it works, not before.
//!
//! - `attach`: one file for each verb with flags of its own
//! - [`values`]: what a flag's text becomes
//! - [`parse`]: arguments in, a [`Cli`] or something to print out

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

pub mod values;

mod attach;
mod clean;
mod cp;
mod detach;
mod list;
mod parse;
mod ssh;
mod status;

pub use attach::Attach;
pub use clean::Clean;
pub use cp::Cp;
pub use detach::Detach;
pub use list::List;
pub use parse::{Stop, command, completion, parse};
pub use ssh::{SeatArgs, Ssh};
pub use status::{SeatsArgs, Status};
pub use values::{Mount, Pull, Size};

const EXAMPLES: &str = "\
Examples:
  podbench attach api                 # a seat beside the only pod whose name has \"api\" in it
  podbench attach deploy/web -n shop  # beside a pod of that Deployment
  ssh podbench-shop-web-7d9f-1        # what attach prints last: ssh, scp, -L, an editor
";

/// Sits you down next to a running process in any Kubernetes pod, reachable by ssh.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "podbench",
    version,
    before_help = EXAMPLES,
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true,
    infer_long_args = false,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, a degraded seat included; 1 a bug or the local disk; 2 the cluster or the \
                  input said no; 3 --require wasn't met; 124 podbench's own deadline passed; 130 interrupted."
)]
pub struct Cli {
    /// Which cluster, and as whom.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// text for people, json for programs: one object, on failure too
    #[arg(
        short = 'o',
        long,
        value_enum,
        global = true,
        default_value_t,
        value_name = "FORMAT",
        hide_possible_values = true,
        help_heading = "Cluster"
    )]
    pub output: Output,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What every verb takes about the cluster.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Cluster")]
pub struct ClusterArgs {
    /// The namespace, else the context's own
    #[arg(short, long, global = true, value_name = "NAME", value_parser = values::text)]
    pub namespace: Option<String>,
    /// The kubeconfig context, else the current one
    #[arg(long, global = true, value_name = "NAME", value_parser = values::text)]
    pub context: Option<String>,
    /// The kubeconfig, else $KUBECONFIG, else ~/.kube/config
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Act as this user
    #[arg(long = "as", global = true, value_name = "USER", value_parser = values::text)]
    pub as_user: Option<String>,
    /// Act as a member of this group (repeatable)
    #[arg(long = "as-group", global = true, value_name = "GROUP", value_parser = values::text)]
    pub as_groups: Vec<String>,
    /// Act with this user UID
    #[arg(long = "as-uid", global = true, value_name = "UID", value_parser = values::text)]
    pub as_uid: Option<String>,
    /// The kubectl to run, else $PODBENCH_KUBECTL, else the one on PATH
    #[arg(long, global = true, value_name = "BIN")]
    pub kubectl: Option<PathBuf>,
    /// Say more on stderr: -v, -vv or -v=LEVEL; every kubectl call with its time from 1 on
    #[arg(
        short,
        long = "v",
        global = true,
        value_name = "LEVEL",
        action = ArgAction::Append,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = clap::value_parser!(u8).range(0..=10),
    )]
    pub v: Vec<u8>,
}

impl ClusterArgs {
    /// The sum of all `-v`.
    #[must_use]
    pub fn verbosity(&self) -> u8 {
        self.v.iter().fold(0, |sum, level| sum.saturating_add(*level))
    }
}

/// How the answer is written on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// The verbs.
#[derive(Clone, Debug, Subcommand)]
pub enum Verb {
    /// Land a seat in a live pod, measure what it can do, and make it an ssh host
    Attach(Box<Attach>),
    /// A shell or a command in your running seat, else in one that is landed now
    Ssh(Ssh),
    /// Copy files and folders to or from your running seat, else one that is landed now
    Cp(Cp),
    /// Write the ssh stanza of a seat that is running already; the cluster is only read
    SshConfig(SshConfig),
    /// Show one pod's seats: their state, what they measure now, how to get in
    Status(Status),
    /// List every seat in the namespace or the cluster, and this machine's ssh hosts that lead nowhere
    List(List),
    /// End your seats in a pod, and remove what podbench wrote on this machine for them
    Detach(Detach),
    /// Remove everything stale from this machine, and end seats that newer ones superseded
    Clean(Clean),
    /// Print the versions of podbench and of the kubectl that it runs
    Version,
    /// Print a script that completes podbench's command line in your shell
    Completion(Completion),
}

/// The pod, and which of its containers.
#[derive(Args, Clone, Debug)]
pub struct PodArgs {
    /// A pod's name or a part of it, or pod/NAME, deploy/NAME, sts/NAME, svc/NAME; asked for where it
    /// is left out
    #[arg(value_parser = values::text)]
    pub pod: Option<String>,
    /// The container to look at, else the pod's default container, else its first that isn't a mesh
    /// sidecar
    #[arg(short = 'c', long, visible_alias = "container", value_name = "CONTAINER", value_parser = values::text)]
    pub target: Option<String>,
    /// Never ask which pod: more than one match is an error
    #[arg(long)]
    pub no_prompt: bool,
}

/// The user's side of ssh.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "ssh")]
pub struct SshArgs {
    /// The key to let in, private or .pub, else the first of ~/.ssh/id_ed25519, id_ecdsa,
    /// id_ed25519_sk, id_ecdsa_sk, id_rsa
    #[arg(long, value_name = "KEY")]
    pub identity: Option<PathBuf>,
    /// The login, else the one that the seat measured
    #[arg(long, value_name = "LOGIN", value_parser = values::login)]
    pub ssh_user: Option<String>,
    /// The name for `ssh NAME`, else podbench-NAMESPACE-POD-N
    #[arg(long, value_name = "NAME", value_parser = values::alias)]
    pub host_alias: Option<String>,
    /// Print the ssh stanza on stdout instead of writing it
    #[arg(long)]
    pub print_config: bool,
    /// Print it with sshd run directly, not through the seat's agent
    #[arg(long, requires = "print_config")]
    pub plain: bool,
}

const SSH_CONFIG_EXAMPLES: &str = "\
Examples:
  podbench ssh-config api                          # rewrite the stanza of the seat in that pod
  podbench ssh-config api --print-config           # print it instead
  podbench ssh-config api --host-alias api         # so that `ssh api` works
";

/// `podbench ssh-config`.
#[derive(Args, Clone, Debug)]
#[command(before_help = SSH_CONFIG_EXAMPLES)]
pub struct SshConfig {
    /// The pod, and which of its containers.
    #[command(flatten)]
    pub pod: PodArgs,
    /// The user's side of ssh.
    #[command(flatten)]
    pub ssh: SshArgs,
}

const COMPLETION_EXAMPLES: &str = "\
Examples:
  source <(podbench completion bash)
  podbench completion zsh > \"${fpath[1]}/_podbench\"
  podbench completion fish > ~/.config/fish/completions/podbench.fish
";

/// `podbench completion`.
#[derive(Args, Clone, Debug)]
#[command(before_help = COMPLETION_EXAMPLES)]
pub struct Completion {
    /// bash, elvish, fish, powershell or zsh
    #[arg(value_enum, hide_possible_values = true)]
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests;
