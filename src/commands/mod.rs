//! One file a verb. `attach` reads as the documented flow.
//!
//! - [`attach`], [`ssh_config`], `version`, `completion`: the verbs
//! - [`pick`]: which pod, for every verb
//! - `explain`: why there is no seat, for a person
//! - `assemble`: the report's value

pub mod attach;
pub mod pick;
pub mod ssh_config;

mod assemble;
mod explain;
mod stub;
mod version;

use std::io::Write as _;

use serde_json::Value;

use crate::cli::{Cli, Output, Verb, completion};
use crate::error::Failure;
use crate::kubectl::Kubectl;
use crate::kubectl::call::Scope;
use crate::kubectl::run::{Interrupt, Real};
use crate::kubectl::transcript::Transcript;
use crate::settings::{Cluster, Settings};

/// What a verb has for stdout.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A value, printed as JSON or rendered as text.
    Value(Value),
    /// Text that is what it is in either format.
    Text(String),
}

/// What a verb is done with: an answer, and a failure that comes after it (`--require`).
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// For stdout.
    pub answer: Answer,
    /// Told after the answer; sets the exit code.
    pub failure: Option<Failure>,
}

impl From<Answer> for Done {
    fn from(answer: Answer) -> Self {
        Self { answer, failure: None }
    }
}

/// What every verb that talks to the cluster has at hand.
pub struct Session<'a> {
    /// The user's machine.
    pub settings: &'a Settings,
    /// What the command line says about the cluster.
    pub cluster: &'a Cluster,
    /// The cluster.
    pub kubectl: &'a Kubectl,
    /// The words after `podbench` that lead here, for hints: `attach`.
    pub verb: &'static str,
}

impl Session<'_> {
    /// Tells a person something while the verb goes on. stdout is for the answer.
    pub fn say(&self, line: &str) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    /// ` in namespace x`, where it is known.
    #[must_use]
    pub fn place(&self) -> String {
        self.kubectl.namespace().map_or_else(String::new, |n| format!(" in namespace {n}"))
    }

    /// The same verb with this pod, to paste.
    #[must_use]
    pub fn again(&self, rest: &str) -> String {
        let namespace = self.kubectl.namespace().map_or_else(String::new, |n| format!(" -n {n}"));
        format!("podbench {} {rest}{namespace}", self.verb)
    }
}

/// Runs a verb.
///
/// # Errors
/// What a person is to be told, where there is no answer.
pub fn run(cli: &Cli, settings: &Settings, interrupt: Interrupt) -> Result<Done, Failure> {
    match &cli.verb {
        Verb::Attach(args) => {
            let local = attach::local(args, settings, &cli.cluster)?;
            let kubectl = kubectl(settings, &local.cluster, interrupt)?;
            let session = Session { settings, cluster: &local.cluster, kubectl: &kubectl, verb: "attach" };
            attach::run(args, &session, &local)
        }
        Verb::SshConfig(args) => {
            let cluster = Cluster::resolve(&cli.cluster, settings)?;
            let kubectl = kubectl(settings, &cluster, interrupt)?;
            let session = Session { settings, cluster: &cluster, kubectl: &kubectl, verb: "ssh-config" };
            ssh_config::run(args, &session)
        }
        Verb::Version => {
            let cluster = Cluster::resolve(&cli.cluster, settings);
            version::run(settings, cluster.ok().as_ref(), interrupt)
        }
        Verb::Completion(args) => {
            let script = String::from_utf8_lossy(&completion(args.shell)).into_owned();
            Ok(Answer::Text(script).into())
        }
    }
}

fn kubectl(settings: &Settings, cluster: &Cluster, interrupt: Interrupt) -> Result<Kubectl, Failure> {
    let program = cluster.kubectl.file_name().map_or_else(|| "kubectl".into(), |n| n.to_string_lossy().into_owned());
    let transcript = Transcript::new(settings.transcript.as_deref(), cluster.verbosity, program)?;
    let scope = Scope { cluster: cluster.clone(), context: None, namespace: None };
    let runner = Box::new(Real { program: cluster.kubectl.clone(), interrupt });
    Ok(Kubectl::new(scope, runner, transcript, settings.stdin_tty))
}

/// What goes to stdout for an answer.
#[must_use]
pub fn printed(answer: &Answer, output: Output, _settings: &Settings) -> String {
    match (answer, output) {
        (Answer::Text(text), _) => text.clone(),
        (Answer::Value(value), Output::Json | Output::Text) => format!("{value:#}\n"),
    }
}
