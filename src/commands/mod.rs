//! One file a verb. `attach` reads as the documented flow.
//!
//! - [`attach`], `ssh`, `cp`, [`ssh_config`], `version`, `completion`: the verbs
//! - `list`, `status`, `detach`, `clean`: what podbench left behind, and how it is taken back
//! - `seats`: what those four share; `give_back`: what `--resize` changed
//! - [`pick`]: which pod, for every verb
//! - `explain`: why there is no seat, for a person
//! - `assemble`: the report's value
//! - `enter`: the way into the caller's seat, for `ssh` and `cp`
//! - `check`: a login at the end of `attach`
//! - `spec_patch`: what a user adds to the container
//! - `resizing`: `attach --resize`, for the report
//! - `running`: the verb that runs, where what is told depends on it

pub mod attach;
pub mod pick;
mod ssh;
pub mod ssh_config;

mod assemble;
mod check;
mod clean;
mod cp;
mod detach;
mod enter;
mod explain;
mod give_back;
mod list;
mod resizing;
mod running;
mod seats;
mod spec_patch;
mod status;
mod version;

pub use running::Running;

use std::ffi::OsString;

use podbench_contract::text::escape_json;
use serde::Serialize;
use serde_json::Value;

use crate::cli::{Cli, Output, Verb, completion};
use crate::config::Defaults;
use crate::error::{Failure, Kind};
use crate::kubectl::Kubectl;
use crate::kubectl::call::Scope;
use crate::kubectl::line::Line;
use crate::kubectl::run::{Interrupt, Real};
use crate::kubectl::transcript::Transcript;
use crate::report;
use crate::report::attach::Calls;
use crate::report::style::Style;
use crate::settings::{Cluster, Settings};
use crate::ssh::sftp::Sftp;
use crate::ui::Ui;

/// What a verb has for stdout.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The report of `attach`; its text is rendered from it and from nothing else.
    Attach(Box<report::attach::Attach>),
    /// A value, and its text.
    Value(Value, String),
    /// Text that is what it is in either format.
    Text(String),
}

/// What a verb is done with: an answer, and a failure that comes after it (`--require`).
#[derive(Clone, Debug)]
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
    /// The verb that runs.
    pub verb: Running<'a>,
    /// The terminal.
    pub ui: Ui,
}

impl Session<'_> {
    /// What is going on now. Not with `-v`, whose lines say it already.
    pub fn progress(&self, text: &str) {
        if self.cluster.verbosity == 0 {
            self.ui.progress(text);
        }
    }

    /// What `config.toml` says for this context; told with `-v`.
    #[must_use]
    pub fn defaults(&self, context: &str) -> Defaults {
        if self.cluster.verbosity > 0 {
            self.settings.config.lines(context).iter().for_each(|line| self.ui.note(line));
        }
        self.settings.config.of(Some(context))
    }

    /// What it cost so far.
    #[must_use]
    pub fn calls(&self) -> Calls {
        let wall_ms = if self.settings.frozen_clock { 0 } else { self.kubectl.elapsed_ms() };
        Calls { kubectl: self.kubectl.calls(), wall_ms }
    }

    /// ` in namespace x`, where it is known.
    #[must_use]
    pub fn place(&self) -> String {
        self.kubectl.namespace().map_or_else(String::new, |n| format!(" in namespace {n}"))
    }

    /// The same verb with this, to paste: a pod, and flags behind it.
    #[must_use]
    pub fn again(&self, rest: &str) -> String {
        self.verb(self.verb.word(), &self.verb.operands(rest))
    }

    /// A verb of podbench's, to paste.
    #[must_use]
    pub fn verb(&self, verb: &str, rest: &str) -> String {
        let gap = if rest.is_empty() { "" } else { " " };
        format!("podbench {verb}{gap}{rest}{}", self.kubectl.flags(self.kubectl.namespace()))
    }

    /// A verb of podbench's that is about this machine, to paste.
    #[must_use]
    pub fn bare_verb(&self, verb: &str) -> String {
        format!("podbench {verb}{}", self.kubectl.flags(None))
    }

    /// A kubectl command in this namespace, to paste.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> String {
        let (verb, rest) = words.split_at(words.len().min(1));
        self.kubectl.command(verb, rest)
    }

    /// A kubectl command about something that isn't in a namespace.
    #[must_use]
    pub fn bare(&self, words: &[&str]) -> String {
        self.kubectl.line(&Line::bare(words))
    }
}

/// Runs a verb.
///
/// # Errors
/// What a person is to be told, where there is no answer.
pub fn run(cli: &Cli, settings: &Settings, interrupt: Interrupt) -> Result<Done, Failure> {
    let configured;
    let settings = if matches!(cli.verb, Verb::Completion(_)) {
        settings
    } else {
        configured = settings.with_config()?;
        &configured
    };
    match &cli.verb {
        Verb::Attach(args) => {
            let local = attach::local(args, settings, &cli.cluster)?;
            let to_check = args.check.then(|| interrupt.clone());
            with(settings, &local.cluster, interrupt, Running::Attach, |session| {
                let done = attach::run(args, session, &local)?;
                Ok(match to_check {
                    Some(interrupt) => check::check(done, session, interrupt),
                    None => done,
                })
            })
        }
        Verb::Ssh(args) => {
            let (client, local) = enter::local(&args.seat, settings, &cli.cluster, &interrupt)?;
            with(settings, &local.cluster, interrupt, Running::Ssh(args), |session| {
                ssh::run(args, session, &local, &client)
            })
        }
        Verb::Cp(args) => {
            let (copy, cluster) = cp::parse(args, &cli.cluster, settings)?;
            let (_, local) = enter::local(&args.seat, settings, &cluster, &interrupt)?;
            let sftp = Sftp::find(settings, interrupt.clone())?;
            with(settings, &local.cluster, interrupt, Running::Cp(args), |session| {
                cp::run(args, session, &copy, &local, &sftp)
            })
        }
        Verb::SshConfig(args) => {
            let cluster = Cluster::resolve(&cli.cluster, settings)?;
            with(settings, &cluster, interrupt, Running::SshConfig, |session| ssh_config::run(args, session))
        }
        Verb::Status(args) => {
            let cluster = Cluster::resolve(&cli.cluster, settings)?;
            with(settings, &cluster, interrupt, Running::Status, |session| status::run(args, session))
        }
        Verb::List(args) => {
            let cluster = Cluster::resolve(&cli.cluster, settings)?;
            with(settings, &cluster, interrupt, Running::List, |session| list::run(args, session))
        }
        Verb::Detach(args) => {
            let cluster = Cluster::resolve(&cli.cluster, settings)?;
            with(settings, &cluster, interrupt, Running::Detach, |session| detach::run(args, session))
        }
        Verb::Clean(args) => {
            let cluster = Cluster::resolve(&cli.cluster, settings)?;
            let elsewhere = clean::Elsewhere::new(settings, &cluster, interrupt.clone());
            with(settings, &cluster, interrupt, Running::Clean, |session| {
                clean::run(args, session, &elsewhere)
            })
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

/// Runs a verb that talks to the cluster.
fn with(
    settings: &Settings,
    cluster: &Cluster,
    interrupt: Interrupt,
    verb: Running<'_>,
    run: impl FnOnce(&Session<'_>) -> Result<Done, Failure>,
) -> Result<Done, Failure> {
    let kubectl = kubectl(settings, cluster, interrupt)?;
    let session = Session { settings, cluster, kubectl: &kubectl, verb, ui: Ui::new(settings) };
    match run(&session) {
        Ok(done) => Ok(Done { failure: done.failure.map(|f| f.written(&kubectl)), ..done }),
        Err(failure) => Err(explain::rights::complete(&session, failure).written(&kubectl)),
    }
}

fn kubectl(settings: &Settings, cluster: &Cluster, interrupt: Interrupt) -> Result<Kubectl, Failure> {
    kubectl_with(settings, cluster, interrupt, Vec::new(), settings.stdin_tty)
}

/// `env`: variables beyond the inherited ones. `terminal`: the first call may ask for credentials there.
fn kubectl_with(
    settings: &Settings,
    cluster: &Cluster,
    interrupt: Interrupt,
    env: Vec<(&'static str, OsString)>,
    terminal: bool,
) -> Result<Kubectl, Failure> {
    let program =
        cluster.kubectl.file_name().map_or_else(|| "kubectl".into(), |n| n.to_string_lossy().into_owned());
    let transcript = Transcript::new(settings.transcript.as_deref(), cluster.verbosity, program)?;
    let scope = Scope { cluster: cluster.clone(), context: None, namespace: None };
    let runner = Box::new(Real { program: cluster.kubectl.clone(), env, interrupt });
    Ok(Kubectl::new(scope, runner, transcript, terminal))
}

/// A report's value, as it is printed.
fn to_value(report: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(report)
        .map_err(|e| Failure::new(Kind::Bug, "the report can't be written as JSON").because(e.to_string()))
}

/// What goes to stdout for an answer.
///
/// # Errors
/// When the report can't be written as JSON: podbench's own bug.
pub fn printed(answer: &Answer, output: Output, settings: &Settings) -> Result<String, Failure> {
    Ok(match (answer, output) {
        (Answer::Text(text), _) | (Answer::Value(_, text), Output::Text) => text.clone(),
        (Answer::Value(value, _), Output::Json) => escape_json(&format!("{value:#}\n")),
        (Answer::Attach(report), Output::Text) => report::text::attach(report, Style::stdout(settings)),
        (Answer::Attach(report), Output::Json) => escape_json(&format!("{:#}\n", to_value(report)?)),
    })
}
