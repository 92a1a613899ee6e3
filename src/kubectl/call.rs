//! One constructor for every kubectl argv. Each fixed flag carries its reason; who calls a verb
//! never spells a flag.

use std::ffi::OsString;
use std::time::Duration;

use crate::settings::Cluster;

/// How long a call may take, and how much it may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From start to end.
    pub total: Duration,
    /// Until the first byte on stdout; an exec through a broken tunnel hangs without a word.
    pub first_byte: Option<Duration>,
    /// Bytes of stdout that are taken; then the process is ended.
    pub most: usize,
}

/// One call: what is run, and why.
#[derive(Clone, Debug)]
pub struct Call {
    /// The arguments after the program's name.
    pub args: Vec<OsString>,
    /// What its stdin says.
    pub stdin: Option<String>,
    /// Variables beyond the inherited ones.
    pub env: Vec<(&'static str, &'static str)>,
    /// Why it is made, for `-v` and the transcript.
    pub why: &'static str,
    /// Its limits.
    pub limits: Limits,
    /// Its stderr is a program's in the pod as well as kubectl's own.
    pub pod_speaks: bool,
}

/// A request's own limit, in kubectl's spelling: shorter than ours, so that kubectl's words about
/// it win.
const REQUEST_TIMEOUT: &str = "--request-timeout=25s";
/// Ours.
pub const DEADLINE: Duration = Duration::from_secs(30);
/// How long a person may take to answer a credential plugin.
pub const SIGN_IN: Duration = Duration::from_secs(300);
/// A list of thousands of pods is tens of megabytes.
const MOST: usize = 256 << 20;

impl Call {
    /// A request: something that has an end of its own.
    pub fn request(scope: &Scope, verb: &[&str], why: &'static str) -> Self {
        let mut args = scope.args();
        args.extend(verb.iter().map(OsString::from));
        args.push(REQUEST_TIMEOUT.into());
        let limits = Limits { total: DEADLINE, first_byte: None, most: MOST };
        Self { args, stdin: None, env: Vec::new(), why, limits, pod_speaks: false }
    }

    /// A stream: exec, logs, a watch. `--request-timeout` would cut it.
    pub fn stream(scope: &Scope, verb: &[&str], why: &'static str, limits: Limits) -> Self {
        let mut args = scope.args();
        args.extend(verb.iter().map(OsString::from));
        Self { args, stdin: None, env: Vec::new(), why, limits, pod_speaks: false }
    }

    /// An exec: what the program in the pod writes to its stderr comes out of kubectl's.
    #[must_use]
    pub const fn of_a_pod(mut self) -> Self {
        self.pod_speaks = true;
        self
    }

    /// With this on stdin.
    #[must_use]
    pub fn with_stdin(mut self, text: String) -> Self {
        self.stdin = Some(text);
        self
    }

    /// The arguments as text.
    #[must_use]
    pub fn argv(&self) -> Vec<String> {
        self.args.iter().map(|a| a.to_string_lossy().into_owned()).collect()
    }
}

/// Which cluster, as whom, and where in it: the flags in front of every verb.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// What the command line says.
    pub cluster: Cluster,
    /// The context, once it is known.
    pub context: Option<String>,
    /// The namespace, likewise.
    pub namespace: Option<String>,
}

impl Scope {
    fn args(&self) -> Vec<OsString> {
        let Cluster { kubeconfig, context, namespace, as_user, as_groups, as_uid, kubectl: _, verbosity: _ } =
            &self.cluster;
        let mut args: Vec<OsString> = Vec::new();
        if let Some(file) = kubeconfig {
            let mut flag = OsString::from("--kubeconfig=");
            flag.push(file);
            args.push(flag);
        }
        // One word each (`--flag=value`): a value can't be read as a flag of its own.
        let mut flag = |name: &str, value: &str| args.push(format!("--{name}={value}").into());
        if let Some(name) = self.context.as_ref().or(context.as_ref()) {
            flag("context", name);
        }
        if let Some(user) = as_user {
            flag("as", user);
        }
        for group in as_groups {
            flag("as-group", group);
        }
        if let Some(uid) = as_uid {
            flag("as-uid", uid);
        }
        if let Some(name) = self.namespace.as_ref().or(namespace.as_ref()) {
            flag("namespace", name);
        }
        args
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_request_has_a_request_timeout() {
        let scope = Scope::default();
        let limits = Limits { total: DEADLINE, first_byte: None, most: 1 };
        let get = Call::request(&scope, &["get", "pod", "x"], "");
        let exec = Call::stream(&scope, &["exec", "x"], "", limits);
        assert!(get.argv().contains(&REQUEST_TIMEOUT.to_owned()));
        assert_eq!(exec.argv(), ["exec", "x"]);
    }

    #[test]
    fn a_value_that_looks_like_a_flag_stays_a_value() {
        let cluster = Cluster { context: Some("--as=root".into()), ..Cluster::default() };
        let scope = Scope { cluster, ..Scope::default() };
        assert_eq!(scope.args(), ["--context=--as=root"]);
    }

    #[test]
    fn the_context_that_was_found_wins_over_the_one_that_was_asked_for() {
        let cluster = Cluster { namespace: Some("a".into()), ..Cluster::default() };
        let scope = Scope { cluster, context: Some("c".into()), namespace: Some("b".into()) };
        assert_eq!(scope.args(), ["--context=c", "--namespace=b"]);
    }
}
