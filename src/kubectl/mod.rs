//! The cluster, through kubectl and nothing else: the user's contexts, credential plugins and
//! proxies just work.
//!
//! - [`call`]: how an argv is made
//! - [`mod@line`]: how a command is written for a person
//! - [`run`]: starts and ends processes
//! - [`plugin`]: could a person be asked for credentials?
//! - `verbs`: what the rest of podbench asks for
//! - `resize`: a running pod's resources
//! - [`mod@refusal`]: what a failed call means
//! - [`transcript`]: what was asked

pub mod call;
#[cfg(test)]
pub(crate) mod fake;
pub mod line;
pub mod plugin;
pub mod refusal;
mod resize;
pub mod run;
pub mod transcript;
mod verbs;

use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use podbench_contract::text::escape_lines;
use serde_json::Value;

use crate::error::{Failure, Kind};
use crate::shell::word;
use call::{Call, SIGN_IN, Scope};
use line::Line;
use refusal::{Refusal, refusal, words};
use run::{Process, Runner, Said, Spawn};
use transcript::{Entry, Transcript};

pub use verbs::{Context, Mode, Watch, Watched};

/// Why a call gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such program, or it can't be started.
    #[error("{program} can't be started: {why}")]
    Start {
        /// What was to be run.
        program: String,
        /// The system's words.
        why: String,
    },
    /// Somebody said no.
    #[error("{}", .0.words())]
    Refused(Refusal),
    /// It failed in words nobody knows.
    #[error("{}", if words.is_empty() { "kubectl failed without a word" } else { words })]
    Failed {
        /// kubectl's words.
        words: String,
        /// Its exit code.
        status: Option<i32>,
    },
    /// Our deadline passed.
    #[error("no answer within {} s: {call}", after.as_secs())]
    Deadline {
        /// What was asked.
        call: String,
        /// How long it had.
        after: Duration,
    },
    /// It says more than anybody asked for.
    #[error("the answer is larger than {most} bytes")]
    TooMuch {
        /// How much is taken.
        most: usize,
    },
    /// ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The answer isn't what was asked for.
    #[error("kubectl's answer isn't {what}: {why}")]
    Answer {
        /// What was expected.
        what: &'static str,
        /// Why it isn't.
        why: String,
    },
}

impl Error {
    /// Did no answer come, so that nobody knows whether what was asked for was done?
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Deadline { .. } | Self::TooMuch { .. } | Self::Answer { .. } => true,
            Self::Refused(refusal) => {
                matches!(refusal, Refusal::Unreachable(_) | Refusal::Slow(_) | Refusal::Cut(_))
            }
            // What the server says begins so; what kubectl itself refuses is a sentence about its flags.
            Self::Failed { words, .. } => {
                !words.contains("Error from server") && !words.contains("invalid subresource value")
            }
            Self::Start { .. } | Self::Interrupted => false,
        }
    }
}

/// Who is asked, and everything that was asked.
pub struct Kubectl {
    scope: Scope,
    pinned: OnceLock<Scope>,
    runner: Box<dyn Runner>,
    transcript: Transcript,
    began: Instant,
    terminal: AtomicBool,
    spdy: AtomicBool,
    thought_ms: AtomicU64,
}

impl Kubectl {
    /// `terminal`: stdin is one, so that the first call may keep it for a credential plugin's prompt.
    #[must_use]
    pub fn new(scope: Scope, runner: Box<dyn Runner>, transcript: Transcript, terminal: bool) -> Self {
        Self {
            scope,
            pinned: OnceLock::new(),
            runner,
            transcript,
            began: Instant::now(),
            terminal: AtomicBool::new(terminal),
            spdy: AtomicBool::new(false),
            thought_ms: AtomicU64::new(0),
        }
    }

    /// From now on every call names this context and namespace: the user may switch contexts in
    /// another terminal while this run goes on. Once; a second pin changes nothing.
    pub fn pin(&self, context: &Context) {
        let namespace = self.scope.cluster.namespace.as_ref().unwrap_or(&context.namespace);
        let pinned = Scope {
            cluster: self.scope.cluster.clone(),
            context: (!context.name.is_empty()).then(|| context.name.clone()),
            namespace: (!namespace.is_empty()).then(|| namespace.clone()),
        };
        let _ = self.pinned.set(pinned);
    }

    fn scope(&self) -> &Scope {
        self.pinned.get().unwrap_or(&self.scope)
    }

    /// The namespace that calls name; `None`: kubectl decides.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.scope().namespace.as_deref().or(self.scope.cluster.namespace.as_deref())
    }

    /// The context that calls name; empty: there is none, or kubectl decides.
    #[must_use]
    pub fn context_name(&self) -> &str {
        self.scope().context.as_deref().unwrap_or_default()
    }

    /// How many processes were started.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.transcript.count()
    }

    /// Wall time since the start, in milliseconds, without what a person took to answer.
    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        millis(self.began.elapsed()).saturating_sub(self.thought_ms.load(Ordering::Relaxed))
    }

    /// A person was asked, and took so long to answer.
    pub fn thought(&self, time: Duration) {
        self.thought_ms.fetch_add(millis(time), Ordering::Relaxed);
    }

    /// Did exec only work over SPDY?
    #[must_use]
    pub fn needs_spdy(&self) -> bool {
        self.spdy.load(Ordering::Relaxed)
    }

    fn start(&self, call: Call) -> Result<Running<'_>, Error> {
        let terminal = call.stdin.is_none() && self.terminal.swap(false, Ordering::Relaxed);
        let spawn =
            Spawn { args: call.args.clone(), env: call.env.clone(), stdin: call.stdin.clone(), terminal };
        self.transcript.started();
        let started = Instant::now();
        let process = self.runner.start(&spawn).map_err(|e| Error::Start {
            program: self.scope.cluster.kubectl.display().to_string(),
            why: e.to_string(),
        })?;
        Ok(Running {
            kubectl: self,
            call,
            process,
            terminal,
            started,
            out: Vec::new(),
            err: Vec::new(),
            status: None,
            ended: false,
        })
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A call that goes on. Dropping it ends it and writes it down.
struct Running<'k> {
    kubectl: &'k Kubectl,
    call: Call,
    process: Box<dyn Process>,
    terminal: bool,
    started: Instant,
    out: Vec<u8>,
    err: Vec<u8>,
    status: Option<i32>,
    ended: bool,
}

/// What of stderr is kept; the rest is read and dropped.
const MOST_STDERR: usize = 64 << 10;
/// A plugin that still talks after this long is waiting for a person.
const TALKS_AFTER: Duration = Duration::from_secs(1);

impl Running<'_> {
    /// Waits for the end.
    fn finish(mut self) -> Result<Vec<u8>, Error> {
        let mut shown = 0;
        let mut total = self.call.limits.total;
        loop {
            if self.terminal && self.started.elapsed() > TALKS_AFTER {
                shown = self.show(shown);
                if shown > 0 {
                    total = total.max(SIGN_IN);
                }
            }
            let until = match self.call.limits.first_byte {
                Some(first) if self.out.is_empty() => first.min(total),
                _ => total,
            };
            let left = until.saturating_sub(self.started.elapsed());
            if left.is_zero() {
                return Err(self.deadline(until));
            }
            if self.step(left.min(TALKS_AFTER))? {
                break;
            }
        }
        if self.status == Some(0) {
            // A copy: the transcript is written when this is dropped.
            return Ok(self.out.clone());
        }
        Err(self.failure())
    }

    /// Takes in the next thing it says; true at its end.
    fn step(&mut self, wait: Duration) -> Result<bool, Error> {
        match self.process.next(wait) {
            Said::Out(bytes) => {
                self.out.extend_from_slice(&bytes);
                let most = self.call.limits.most;
                if self.out.len() > most {
                    self.process.kill();
                    return Err(Error::TooMuch { most });
                }
                Ok(false)
            }
            Said::Err(bytes) => {
                self.err.extend_from_slice(&bytes);
                // Both ends are kept: kubectl's own last line comes after whatever a pod has said.
                if self.err.len() > MOST_STDERR {
                    self.err.drain(MOST_STDERR / 2..self.err.len() - MOST_STDERR / 2);
                }
                Ok(false)
            }
            Said::End(status) => {
                self.ended = true;
                self.status = status;
                Ok(true)
            }
            Said::Nothing => Ok(false),
            Said::Interrupted => {
                self.process.kill();
                Err(Error::Interrupted)
            }
        }
    }

    fn deadline(&mut self, after: Duration) -> Error {
        self.process.kill();
        let call: Vec<String> = self.call.argv().iter().map(|w| word(w)).collect();
        Error::Deadline { call: format!("kubectl {}", call.join(" ")), after }
    }

    fn failure(&self) -> Error {
        let stderr = String::from_utf8_lossy(&self.err);
        let known = if self.call.pod_speaks { refusal::of_exec(&stderr) } else { refusal(&stderr) };
        known.map_or_else(|| Error::Failed { words: words(&stderr), status: self.status }, Error::Refused)
    }

    /// Lets a person read what a credential plugin asks for; returns how much was shown.
    fn show(&self, shown: usize) -> usize {
        let all = String::from_utf8_lossy(&self.err);
        if all.lines().all(refusal::is_log) {
            return shown;
        }
        let new = String::from_utf8_lossy(self.err.get(shown..).unwrap_or_default());
        let _ = std::io::stderr().write_all(escape_lines(&new, MOST_STDERR).as_bytes());
        self.err.len()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.process.kill();
        }
        let ms = |at: Instant| millis(at - self.kubectl.began);
        self.kubectl.transcript.ended(&Entry {
            argv: self.call.argv(),
            stdin: self.call.stdin.clone(),
            stdout: String::from_utf8_lossy(&self.out).into_owned(),
            stderr: String::from_utf8_lossy(&self.err).into_owned(),
            status: self.status,
            started_ms: ms(self.started),
            ended_ms: ms(Instant::now()),
            why: self.call.why,
        });
    }
}

/// A call that was started and whose answer is a `T`. Several may go on side by side.
pub struct Started<'k, T> {
    running: Running<'k>,
    read: fn(&[u8]) -> Result<T, Error>,
}

impl<T> Started<'_, T> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// When there is none.
    pub fn finish(self) -> Result<T, Error> {
        let (read, kubectl) = (self.read, self.running.kubectl);
        read(&self.running.finish()?).map_err(|error| match error {
            Error::Answer { what, why } if what == "JSON" => {
                let program = kubectl.scope.cluster.kubectl.display();
                Error::Answer { what, why: format!("{why}; {program} gave it") }
            }
            other => other,
        })
    }

    /// Waits for the answer, at most so long from now.
    ///
    /// # Errors
    /// When there is none.
    pub fn finish_within(mut self, limit: Duration) -> Result<T, Error> {
        let total = &mut self.running.call.limits.total;
        *total = (*total).min(self.running.started.elapsed() + limit);
        self.finish()
    }
}

fn json(bytes: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(bytes).map_err(|e| Error::Answer { what: "JSON", why: e.to_string() })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = plain(&error.to_string());
        match error {
            Error::Start { .. } => Self::input(message)
                .because("podbench reaches the cluster through kubectl and nothing else")
                .hint("podbench attach POD --kubectl /path/to/kubectl"),
            Error::Refused(refusal) => refused(&refusal),
            Error::Failed { status, .. } => Self::cluster(message).because(match status {
                Some(code) => format!("kubectl ended with exit code {code}"),
                None => "kubectl was ended by a signal".to_owned(),
            }),
            Error::Deadline { call, after } => {
                Self::new(Kind::Deadline, format!("no answer within {} s", after.as_secs()))
                    .because(format!("podbench ended `{call}`"))
                    .line(Line::bare(&["get", "--raw", "/readyz", "--request-timeout=5s"]))
            }
            Error::Answer { .. } => Self::cluster(message).line(Line::bare(&["version", "--client"])),
            Error::TooMuch { .. } => Self::cluster(message),
            Error::Interrupted => Self::new(Kind::Interrupted, "interrupted"),
        }
    }
}

/// kubectl's words behind an `error: ` of ours, and without a field's name that is empty.
fn plain(words: &str) -> String {
    words.strip_prefix("error: ").unwrap_or(words).replace(" is invalid: : ", " is invalid: ")
}

/// A refusal as a person is told it, where nobody knows more about what was tried.
fn refused(refusal: &Refusal) -> Failure {
    let failure = Failure::cluster(plain(&refusal.words()));
    match refusal {
        Refusal::Rbac(right) => {
            let failure = rbac_hints(failure.because("RBAC: a role that grants it is missing"), right);
            Failure { lacks: Some(Box::new(right.clone())), ..failure }
        }
        Refusal::Unreachable(words) if words.starts_with(refusal::NO_PROXY) => failure
            .because("the proxy in front of the API server can't be reached")
            .because("HTTPS_PROXY, https_proxy or the kubeconfig's proxy-url names it")
            .hint("env | grep -i _proxy")
            .line(Line::bare(&["config", "view", "--minify"])),
        Refusal::Unreachable(_) => {
            failure.because("the API server can't be reached").line(Line::bare(&["version"]))
        }
        Refusal::Slow(_) => {
            failure.because("the API server answers too slowly").line(Line::bare(&["version"]))
        }
        Refusal::Credentials(_) => {
            failure.because("the cluster doesn't know who is asking").line(Line::bare(&["auth", "whoami"]))
        }
        Refusal::Kubeconfig(_) => failure
            .because("kubectl finds no cluster to talk to")
            .line(Line::bare(&["config", "get-contexts"])),
        Refusal::Node(_) => {
            failure.because("the API server can't reach the pod's node").line(Line::bare(&["get", "nodes"]))
        }
        Refusal::Upgrade(_) => failure
            .because("something in front of the node refuses exec over websockets and over SPDY; it isn't RBAC, whose words are others")
            .line(Line::bare(&["auth", "can-i", "create", "pods/exec"])),
        Refusal::Cut(_) => failure.because("the connection of the exec was cut before its answer was whole"),
        Refusal::WebhookFailed { webhook, .. } => failure
            .because(format!("the webhook {webhook} didn't answer, so nobody has said yes or no"))
            .line(Line::bare(&["get", "validatingwebhookconfigurations,mutatingwebhookconfigurations"])),
        Refusal::PodSecurity { .. }
        | Refusal::Frozen { .. }
        | Refusal::Policy { .. }
        | Refusal::WebhookDenied { .. }
        | Refusal::Quota(_)
        | Refusal::Constraint(_)
        | Refusal::Conflict
        | Refusal::Invalid(_)
        | Refusal::NotFound(_)
        | Refusal::NoSubresource(_)
        | Refusal::NoProgram(_)
        | Refusal::NoContainer(_)
        | Refusal::Exited(_)
        | Refusal::Forbidden(_) => failure,
    }
}

/// The role that would help, as commands that an admin can paste.
pub fn rbac_hints(failure: Failure, right: &refusal::Right) -> Failure {
    let resource = if right.group.is_empty() {
        right.resource.clone()
    } else {
        // kubectl spells `resource.group/subresource`.
        match right.resource.split_once('/') {
            Some((name, sub)) => format!("{name}.{}/{sub}", right.group),
            None => format!("{}.{}", right.resource, right.group),
        }
    };
    let user = match right.user.strip_prefix("system:serviceaccount:") {
        Some(account) => format!("--serviceaccount={account}"),
        None => format!("--user={}", right.user),
    };
    let name = format!("podbench-{}-{}", right.verb, right.resource.replace('/', "-"));
    // A websocket is a GET, and the server asks for that right too; without it exec falls back to SPDY.
    let verbs = if right.resource == "pods/exec" { "create,get" } else { &right.verb };
    let (verb, resource) = (format!("--verb={verbs}"), format!("--resource={resource}"));
    let Some(namespace) = &right.namespace else {
        let role = format!("--clusterrole={name}");
        return failure
            .line(Line::bare(&["create", "clusterrole", &name, &verb, &resource]))
            .line(Line::bare(&["create", "clusterrolebinding", &name, &role, &user]));
    };
    let role = format!("--role={name}");
    failure.line(Line::within(namespace, &["create", "role", &name], &[&verb, &resource])).line(Line::within(
        namespace,
        &["create", "rolebinding", &name],
        &[&role, &user],
    ))
}
