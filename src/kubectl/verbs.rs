//! What the rest of podbench asks kubectl for. Flags are spelled here and nowhere else.

use std::time::{Duration, Instant};

use podbench_contract::rung::Rung;
use serde_json::{Value, json};

use super::call::{Call, DEADLINE, Limits};
use super::refusal::Refusal;
use super::{Error, Kubectl, Running, Started, json as parse};

/// Is a write rehearsed or meant?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The whole admission chain, nothing stored.
    DryRun,
    /// Stored.
    Store,
}

/// Where kubectl talks to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The context's name; empty where there is no kubeconfig (inside a pod).
    pub name: String,
    /// The namespace that counts when nobody names one.
    pub namespace: String,
    /// The program that gives credentials, which may ask a person, or hang.
    pub plugin: Option<String>,
}

impl Kubectl {
    /// The context, its namespace, and whether its credentials come from a plugin. Local: no server
    /// is asked and no plugin runs.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn context(&self) -> Result<Started<'_, Context>, Error> {
        let call = Call::request(
            self.scope(),
            &["config", "view", "--minify", "-o", "json"],
            "which cluster and namespace",
        );
        Ok(Started { running: self.start(call)?, read: read_context })
    }

    /// One pod, by its whole name: needs `get` and no `list`.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn get_pod(&self, name: &str) -> Result<Started<'_, Value>, Error> {
        self.get("pod", name, "the pod")
    }

    /// An object by its kind and name.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn get(&self, kind: &str, name: &str, why: &'static str) -> Result<Started<'_, Value>, Error> {
        let call = Call::request(self.scope(), &["get", kind, name, "-o", "json"], why);
        Ok(Started { running: self.start(call)?, read: parse })
    }

    /// The namespace's pods, or those that a selector picks.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn list_pods(&self, selector: Option<&str>) -> Result<Started<'_, Value>, Error> {
        let flag = selector.map(|s| format!("--selector={s}"));
        let mut verb = vec!["get", "pods", "-o", "json"];
        verb.extend(flag.as_deref());
        let call = Call::request(self.scope(), &verb, "the namespace's pods");
        Ok(Started { running: self.start(call)?, read: parse })
    }

    /// The pods of every namespace, or those of them that a selector picks.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn list_all_pods(&self, selector: Option<&str>) -> Result<Started<'_, Value>, Error> {
        let flag = selector.map(|s| format!("--selector={s}"));
        let mut verb = vec!["get", "pods", "--all-namespaces", "-o", "json"];
        verb.extend(flag.as_deref());
        let call = Call::request(self.scope(), &verb, "the cluster's pods");
        Ok(Started { running: self.start(call)?, read: parse })
    }

    /// What the API server calls the user.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn whoami(&self) -> Result<Started<'_, String>, Error> {
        let call = Call::request(self.scope(), &["auth", "whoami", "-o", "json"], "whose seat it will be");
        let read = |bytes: &[u8]| {
            let value = parse(bytes)?;
            let name = value.pointer("/status/userInfo/username").and_then(Value::as_str);
            name.map(str::to_owned)
                .ok_or(Error::Answer { what: "a user name", why: "there is none".to_owned() })
        };
        Ok(Started { running: self.start(call)?, read })
    }

    /// Writes the whole pod through its `ephemeralcontainers` subresource, or rehearses that. The
    /// whole object: admission policies match on any of its fields. `--raw`: `kubectl debug` merges
    /// a profile of its own into the container, and has no dry run.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn put_ephemeral(
        &self,
        namespace: &str,
        name: &str,
        pod: &Value,
        mode: Mode,
        rung: Rung,
    ) -> Result<Started<'_, Value>, Error> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/ephemeralcontainers");
        let path = match mode {
            Mode::DryRun => format!("{path}?dryRun=All"),
            Mode::Store => path,
        };
        let why = match (mode, rung) {
            (Mode::DryRun, Rung::Full) => "rehearse the full rung: what would be stored",
            (Mode::DryRun, Rung::Degraded) => "rehearse the degraded rung: what would be stored",
            (Mode::DryRun, Rung::Seat) => "rehearse the seat rung: what would be stored",
            (Mode::Store, Rung::Full) => "land the seat on the full rung",
            (Mode::Store, Rung::Degraded) => "land the seat on the degraded rung",
            (Mode::Store, Rung::Seat) => "land the seat on the seat rung",
        };
        let call = Call::request(self.scope(), &["replace", "--raw", &path, "-f", "-"], why)
            .with_stdin(pod.to_string());
        Ok(Started { running: self.start(call)?, read: parse })
    }

    /// May the user do this? Any authenticated user may ask that about themselves.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn may(&self, namespace: &str, verb: &str, resource: &str) -> Result<Started<'_, bool>, Error> {
        let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "namespace": namespace, "verb": verb, "group": "", "resource": resource, "subresource": sub,
            }},
        });
        const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let call = Call::request(self.scope(), &["create", "--raw", PATH, "-f", "-"], "may the user do this")
            .with_stdin(review.to_string());
        let read = |bytes: &[u8]| {
            Ok(parse(bytes)?.pointer("/status/allowed").and_then(Value::as_bool) == Some(true))
        };
        Ok(Started { running: self.start(call)?, read })
    }

    /// kubectl's own version.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn client_version(&self) -> Result<Started<'_, String>, Error> {
        let call = Call::request(self.scope(), &["version", "--client", "-o", "json"], "kubectl's version");
        let read = |bytes: &[u8]| {
            let value = parse(bytes)?;
            let version =
                value.pointer("/clientVersion/gitVersion").and_then(Value::as_str).map(str::to_owned);
            version.ok_or(Error::Answer { what: "a version", why: "there is none".to_owned() })
        };
        Ok(Started { running: self.start(call)?, read })
    }

    /// The minor version of the server.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn server_minor(&self) -> Result<Started<'_, u32>, Error> {
        let call = Call::request(self.scope(), &["get", "--raw", "/version"], "the server's version");
        let read = |bytes: &[u8]| {
            let value = parse(bytes)?;
            let minor = value.pointer("/minor").and_then(Value::as_str).unwrap_or_default();
            let digits: String = minor.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().map_err(|_| Error::Answer { what: "a version", why: "it has no minor".to_owned() })
        };
        Ok(Started { running: self.start(call)?, read })
    }

    /// The tail of a container's log.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn log_tail(&self, pod: &str, container: &str, lines: u32) -> Result<Started<'_, String>, Error> {
        let tail = format!("--tail={lines}");
        let limits = Limits { total: Duration::from_secs(10), first_byte: None, most: 256 << 10 };
        // `--limit-bytes`: a line has no length limit, and the log is the application's.
        let verb = ["logs", pod, "-c", container, &tail, "--limit-bytes=16384"];
        let call = Call::stream(self.scope(), &verb, "the target's last words", limits);
        Ok(Started {
            running: self.start(call)?,
            read: |bytes| Ok(String::from_utf8_lossy(bytes).into_owned()),
        })
    }

    /// Runs something in a container and takes what it prints. No stdin, no terminal.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn exec(
        &self,
        pod: &str,
        container: &str,
        argv: &[&str],
        limits: Limits,
        why: &'static str,
    ) -> Result<Started<'_, Vec<u8>>, Error> {
        let mut verb = vec!["exec", pod, "-c", container, "--"];
        verb.extend(argv);
        let mut call = Call::stream(self.scope(), &verb, why, limits).of_a_pod();
        if self.needs_spdy() {
            call.env.push(("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false"));
        }
        Ok(Started { running: self.start(call)?, read: |bytes| Ok(bytes.to_vec()) })
    }

    /// From now on exec goes over SPDY: something in between refuses websockets.
    pub fn use_spdy(&self) {
        self.spdy.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Follows one pod. `get POD -w` needs get and watch; `wait` would need list as well.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn watch_pod(&self, name: &str) -> Result<Watch<'_>, Error> {
        self.watch_pod_until(name, "until the seat runs")
    }

    /// The same with another reason.
    ///
    /// # Errors
    /// When kubectl can't be started.
    pub fn watch_pod_until(&self, name: &str, why: &'static str) -> Result<Watch<'_>, Error> {
        let limits = Limits { total: Duration::MAX, first_byte: None, most: MOST_WATCHED };
        let verb = ["get", "pod", name, "--watch", "--output-watch-events", "-o", "json"];
        let call = Call::stream(self.scope(), &verb, why, limits);
        Ok(Watch { running: self.start(call)?, read: 0 })
    }
}

fn read_context(bytes: &[u8]) -> Result<Context, Error> {
    let value = parse(bytes)?;
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let namespace =
        Some(text("/contexts/0/context/namespace")).filter(|n| !n.is_empty()).unwrap_or("default");
    let user = value.pointer("/users/0/user");
    Ok(Context {
        name: Some(text("/contexts/0/name"))
            .filter(|n| !n.is_empty())
            .unwrap_or(text("/current-context"))
            .to_owned(),
        namespace: namespace.to_owned(),
        plugin: user.and_then(plugin),
    })
}

/// What a kubeconfig's user runs for its credentials.
fn plugin(user: &Value) -> Option<String> {
    let name = |of: &Value, field: &str| of.get(field).and_then(Value::as_str).unwrap_or("?").to_owned();
    let exec = user.get("exec").map(|exec| name(exec, "command"));
    exec.or_else(|| user.get("auth-provider").map(|provider| name(provider, "name")))
}

/// What a watch says.
#[derive(Clone, Debug, PartialEq)]
pub enum Watched {
    /// The pod as it is now.
    Pod(Value),
    /// The pod is gone.
    Deleted,
    /// Nothing within the time.
    Nothing,
}

/// Events of one pod.
pub struct Watch<'k> {
    running: Running<'k>,
    read: usize,
}

/// What a watch says in all: the events stay for the transcript. One pod's start takes about ten; a
/// watch that says more is ended, and whoever waits asks instead.
const MOST_WATCHED: usize = 64 << 20;
/// A pod's object is at most 1.5 MB in etcd; printed with indentation it grows.
const MOST_EVENT: usize = 16 << 20;

impl Watch<'_> {
    /// The next event.
    ///
    /// # Errors
    /// When the watch ended: it was denied, cut, or the user wants to stop.
    pub fn next(&mut self, until: Instant) -> Result<Watched, Error> {
        loop {
            if let Some(event) = self.parsed()? {
                return Ok(event);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Watched::Nothing);
            }
            let before = self.running.err.len();
            let ended = self.running.step(left.min(DEADLINE))?;
            // A kubectl that may get and not watch says so, and tries for ever.
            let denied =
                self.running.err.len() > before && matches!(self.running.failure(), Error::Refused(_));
            if denied || ended {
                return self.parsed()?.ok_or_else(|| self.running.failure());
            }
        }
    }

    fn parsed(&mut self) -> Result<Option<Watched>, Error> {
        let rest = self.running.out.get(self.read..).unwrap_or_default();
        let mut events = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
        match events.next() {
            Some(Ok(mut event)) => {
                let took = events.byte_offset();
                self.read += took;
                let deleted = event.get("type").and_then(Value::as_str) == Some("DELETED");
                let pod = event.get_mut("object").map(Value::take).unwrap_or_default();
                Ok(Some(if deleted { Watched::Deleted } else { Watched::Pod(pod) }))
            }
            Some(Err(e)) if e.is_eof() && rest.len() < MOST_EVENT => Ok(None),
            Some(Err(e)) => Err(Error::Answer { what: "an event", why: e.to_string() }),
            None => Ok(None),
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        // The transcript holds the events that were looked at, so that a replay says the same.
        self.running.out.truncate(self.read);
    }
}

impl Error {
    /// The refusal, where it is one.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Start { .. }
            | Self::Failed { .. }
            | Self::Deadline { .. }
            | Self::TooMuch { .. }
            | Self::Interrupted
            | Self::Answer { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubectl::fake;

    #[test]
    fn a_watch_that_never_stops_talking_is_ended() {
        let (kubectl, _) = fake::kubectl(|_, _| fake::stays(" ".repeat(MOST_WATCHED + 1), ""));
        let mut watch = kubectl.watch_pod("api").unwrap();
        let said = watch.next(Instant::now() + Duration::from_secs(60));
        assert_eq!(said, Err(Error::TooMuch { most: MOST_WATCHED }));
    }
}
