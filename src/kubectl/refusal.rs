//! What kubectl's stderr means when a call failed. Pure.
//!
//! RBAC, Pod Security and quota all print `(Forbidden)`, so the parsers key on the words that only
//! one of them writes, and keep the whole text. Each looks for its own words alone; a test shows
//! every parser every recorded sample (`samples/`, from a live cluster).

use podbench_contract::ids::Uid;
use podbench_contract::text::escape_lines;

/// Who said no, and in which words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The user lacks a right.
    Rbac(Right),
    /// Pod Security. It judges the whole pod: `offenders` names every container that it objects to.
    PodSecurity {
        /// Such as `restricted:latest`.
        level: String,
        /// The containers it names.
        offenders: Vec<String>,
        /// The server's words.
        words: String,
    },
    /// An older ephemeral container would be changed, which a mutating policy newer than it does.
    Frozen {
        /// That container.
        container: String,
        /// The server's words.
        words: String,
    },
    /// A `ValidatingAdmissionPolicy` said no.
    Policy {
        /// Its name.
        policy: String,
        /// The server's words.
        words: String,
    },
    /// An admission webhook said no.
    WebhookDenied {
        /// Its name.
        webhook: String,
        /// The server's words.
        words: String,
    },
    /// An admission webhook didn't answer: nobody said no.
    WebhookFailed {
        /// Its name.
        webhook: String,
        /// The server's words.
        words: String,
    },
    /// A resource quota.
    Quota(String),
    /// `OpenShift`'s security context constraints.
    Constraint(String),
    /// Somebody else wrote the object meanwhile.
    Conflict,
    /// The object isn't one that the server takes.
    Invalid(String),
    /// There is no such object.
    NotFound(String),
    /// The server doesn't know the subresource or resource.
    NoSubresource(String),
    /// The server can't be reached.
    Unreachable(String),
    /// The server answers too slowly.
    Slow(String),
    /// The server doesn't know who is asking, or a credential plugin failed.
    Credentials(String),
    /// The kubeconfig says nothing usable.
    Kubeconfig(String),
    /// The container has no such program.
    NoProgram(String),
    /// The container isn't there, or not any more.
    NoContainer(String),
    /// The API server can't reach the pod's node.
    Node(String),
    /// The connection for exec was refused, and not by RBAC.
    Upgrade(String),
    /// The exec was there, and its connection was cut in the middle.
    Cut(String),
    /// The command ran and ended with this code.
    Exited(i32),
    /// Another `(Forbidden)`: one access review tells whether the user lacks a right.
    Forbidden(String),
}

/// A right that a user lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// Who.
    pub user: String,
    /// Such as `update`.
    pub verb: String,
    /// Such as `pods/ephemeralcontainers`.
    pub resource: String,
    /// The API group; empty for the core.
    pub group: String,
    /// Where; `None` is the cluster scope.
    pub namespace: Option<String>,
}

/// What failed kubectl calls print at most that is looked at.
const MOST: usize = 6000;

/// Reads the stderr of a kubectl that failed. `None`: none of the words are known.
#[must_use]
pub fn refusal(stderr: &str) -> Option<Refusal> {
    let text = &words(stderr);
    let refusal = PARSERS.iter().find_map(|parse| parse(text)).or_else(|| forbidden(text))?;
    Some(match (refusal, proxy(stderr)) {
        // Of a dead proxy kubectl's last words speak as of the server; its log knows better.
        (Refusal::Unreachable(_), Some(proxy)) => Refusal::Unreachable(proxy),
        (refusal, _) => refusal,
    })
}

/// What Go says of a proxy that it couldn't connect to, from kubectl's words or its log lines.
fn proxy(stderr: &str) -> Option<String> {
    let at = stderr.find(NO_PROXY)?;
    let clause = stderr[at..].split(['"', '\n']).next()?;
    Some(escape_lines(clause.trim(), MOST))
}

/// How Go begins what it says of a proxy that it couldn't connect to.
pub const NO_PROXY: &str = "proxyconnect tcp: ";

/// Reads the stderr of a failed exec. The program in the pod writes there too, and isn't believed:
/// only the last line is kubectl's, and where the program ended by itself kubectl says so at its end,
/// even when the program left its own last line open.
#[must_use]
pub fn of_exec(stderr: &str) -> Option<Refusal> {
    const ENDED: &str = "command terminated with exit code ";
    let last = stderr.trim_end().lines().next_back().unwrap_or_default();
    match last.rsplit_once(ENDED).and_then(|(_, code)| code.parse().ok()) {
        Some(code) => Some(Refusal::Exited(code)),
        None => refusal(last),
    }
}

/// kubectl's words without its own log lines (`E1130 … memcache.go…`), bounded and escaped.
#[must_use]
pub fn words(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().filter(|l| !is_log(l)).collect();
    escape_lines(lines.join("\n").trim(), MOST)
}

/// A line that kubectl's logging library wrote, or a warning beside the answer.
#[must_use]
pub fn is_log(line: &str) -> bool {
    let mut bytes = line.bytes();
    let letter = bytes.next().is_some_and(|b| b"EWIF".contains(&b));
    let date = bytes.by_ref().take(4).filter(u8::is_ascii_digit).count() == 4;
    (letter && date && bytes.next() == Some(b' ')) || line.starts_with("Warning: ")
}

type Parser = fn(&str) -> Option<Refusal>;

/// Admission's frames come first: behind them stands text of whoever wrote the rule, which may hold
/// any of the others' words.
const PARSERS: [Parser; 22] = [
    policy,
    webhook_denied,
    webhook_failed,
    rbac,
    pod_security,
    frozen,
    quota,
    constraint,
    conflict,
    invalid,
    not_found,
    no_subresource,
    credentials,
    kubeconfig,
    unreachable,
    slow,
    no_program,
    no_container,
    node,
    upgrade,
    cut,
    exited,
];

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split_once(after).map(|(inner, _)| inner)
}

/// The text without what kubectl puts in front of every server's answer.
fn said(text: &str) -> String {
    let mut rest = text;
    if let Some(after) = rest.strip_prefix("Error from server") {
        rest = after.split_once(": ").map_or(after, |(_, words)| words);
    }
    for prefix in ["error: ", "Error: "] {
        rest = rest.strip_prefix(prefix).unwrap_or(rest);
    }
    // How kubectl frames whatever comes with the reason `Unauthorized`, a webhook's no too.
    let framed = rest.strip_prefix("You must be logged in to the server (").and_then(|r| r.strip_suffix(')'));
    rest = framed.filter(|inner| inner.contains(' ')).unwrap_or(rest);
    rest.trim().replace(" is invalid: : ", " is invalid: ")
}

fn rbac(text: &str) -> Option<Refusal> {
    let rest = text.split_once("is forbidden: User \"").map(|(_, rest)| rest)?;
    let (user, rest) = rest.split_once("\" cannot ")?;
    let (verb, rest) = rest.split_once(' ')?;
    let resource = between(rest, "resource \"", "\"").or_else(|| between(rest, "path \"", "\""))?;
    let group = between(rest, "in API group \"", "\"").unwrap_or_default();
    // They become words of a command that a person is told to paste.
    let plain = |word: &str| word.bytes().all(|b| b.is_ascii_alphanumeric() || b"./*-_:".contains(&b));
    if ![verb, resource, group].into_iter().all(plain) {
        return None;
    }
    Some(Refusal::Rbac(Right {
        user: user.to_owned(),
        verb: verb.to_owned(),
        resource: resource.to_owned(),
        group: group.to_owned(),
        namespace: between(rest, "in the namespace \"", "\"").map(str::to_owned),
    }))
}

fn pod_security(text: &str) -> Option<Refusal> {
    let level = between(text, "violates PodSecurity \"", "\"")?.to_owned();
    Some(Refusal::PodSecurity { level, offenders: offenders(text), words: said(text) })
}

/// The containers that Pod Security names: `container "a" must …`, `containers "a", "b" must …`.
fn offenders(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("container") {
        rest = after;
        let mut list = after.strip_prefix('s').unwrap_or(after);
        while let Some(quoted) = list.strip_prefix(" \"").or_else(|| list.strip_prefix(", \"")) {
            let Some((name, after)) = quoted.split_once('"') else { break };
            if !found.iter().any(|n| n == name) {
                found.push(name.to_owned());
            }
            list = after;
        }
    }
    found
}

fn frozen(text: &str) -> Option<Refusal> {
    let rest = text.split_once("existing ephemeral containers \"").map(|(_, rest)| rest)?;
    let (container, after) = rest.split_once('"')?;
    // The rest is a diff of the two objects, which nobody can act on.
    after.starts_with(" may not be ").then(|| Refusal::Frozen {
        container: container.to_owned(),
        words: said(text).lines().next().unwrap_or_default().to_owned(),
    })
}

fn policy(text: &str) -> Option<Refusal> {
    let name = between(text, "ValidatingAdmissionPolicy '", "'")?;
    text.contains("denied request").then(|| Refusal::Policy { policy: name.to_owned(), words: said(text) })
}

fn webhook_denied(text: &str) -> Option<Refusal> {
    let webhook = between(text, "admission webhook \"", "\"")?.to_owned();
    text.contains("denied the request").then(|| Refusal::WebhookDenied { webhook, words: said(text) })
}

fn webhook_failed(text: &str) -> Option<Refusal> {
    let webhook = between(text, "failed calling webhook \"", "\"")?.to_owned();
    Some(Refusal::WebhookFailed { webhook, words: said(text) })
}

fn quota(text: &str) -> Option<Refusal> {
    (text.contains("is forbidden: exceeded quota: ") || text.contains("is forbidden: failed quota: "))
        .then(|| Refusal::Quota(said(text)))
}

fn constraint(text: &str) -> Option<Refusal> {
    text.contains("unable to validate against any security context constraint")
        .then(|| Refusal::Constraint(said(text)))
}

fn conflict(text: &str) -> Option<Refusal> {
    (text.starts_with("Error from server (Conflict): ")
        && text.contains("the object has been modified; please apply your changes to the latest version"))
    .then_some(Refusal::Conflict)
}

fn invalid(text: &str) -> Option<Refusal> {
    let object = text.starts_with("The ") && text.contains(" is invalid: ");
    (object && frozen(text).is_none() && policy(text).is_none()).then(|| Refusal::Invalid(said(text)))
}

fn not_found(text: &str) -> Option<Refusal> {
    (text.starts_with("Error from server (NotFound): ") && text.contains("\" not found"))
        .then(|| Refusal::NotFound(said(text)))
}

fn no_subresource(text: &str) -> Option<Refusal> {
    (text.contains("(NotFound): the server could not find the requested resource")
        || text.contains("the server doesn't have a resource type"))
    .then(|| Refusal::NoSubresource(said(text)))
}

fn credentials(text: &str) -> Option<Refusal> {
    ["(Unauthorized)", "getting credentials: ", "exec plugin: ", "exec authentication plugin"]
        .iter()
        .any(|words| text.contains(words))
        .then(|| Refusal::Credentials(text.to_owned()))
}

fn kubeconfig(text: &str) -> Option<Refusal> {
    const WORDS: [&str; 9] = [
        "context was not found",
        "cannot locate context",
        "no context exists with the name",
        "cluster has not been found",
        "current-context must exist",
        "error loading config file",
        "invalid configuration",
        // What kubectl falls back to where there is no kubeconfig at all.
        "The connection to the server localhost:8080 was refused",
        "Missing or incomplete configuration info",
    ];
    let context = text.contains("context \"") && text.contains("\" does not exist");
    (context || WORDS.iter().any(|w| text.contains(w))).then(|| Refusal::Kubeconfig(said(text)))
}

fn unreachable(text: &str) -> Option<Refusal> {
    if credentials(text).is_some()
        || kubeconfig(text).is_some()
        || slow(text).is_some()
        || cut(text).is_some()
    {
        return None;
    }
    const WORDS: [&str; 7] = [
        "Unable to connect to the server: ",
        "The connection to the server ",
        "unable to connect to the server",
        "(ServiceUnavailable)",
        "the server is currently unable to handle the request",
        "connection reset by peer",
        "error: EOF",
    ];
    (WORDS.iter().any(|w| text.contains(w)) && node(text).is_none() && webhook_failed(text).is_none())
        .then(|| Refusal::Unreachable(said(text)))
}

fn slow(text: &str) -> Option<Refusal> {
    const WORDS: [&str; 6] = [
        "Client.Timeout exceeded",
        "context deadline exceeded",
        "TLS handshake timeout",
        "(Timeout)",
        "etcdserver: request timed out",
        "(TooManyRequests)",
    ];
    (WORDS.iter().any(|w| text.contains(w)) && webhook_failed(text).is_none() && node(text).is_none())
        .then(|| Refusal::Slow(said(text)))
}

fn no_program(text: &str) -> Option<Refusal> {
    let runtime = text.contains("executing command in container") || text.contains("OCI runtime exec failed");
    let missing =
        ["no such file or directory", "executable file not found", "exec format error", "permission denied"]
            .iter()
            .any(|w| text.contains(w));
    (runtime && missing).then(|| Refusal::NoProgram(said(text)))
}

fn no_container(text: &str) -> Option<Refusal> {
    const WORDS: [&str; 7] = [
        "container not found (",
        "is not valid for pod ",
        "unable to upgrade connection: pod does not exist",
        "cannot exec into a container in a completed pod",
        "container is not created or running",
        "not created or running",
        "container not running",
    ];
    WORDS.iter().any(|w| text.contains(w)).then(|| Refusal::NoContainer(said(text)))
}

fn node(text: &str) -> Option<Refusal> {
    const WORDS: [&str; 5] = [
        "error dialing backend",
        // Over websockets the API server quotes its own request to the kubelet. Without the first
        // three words the request is kubectl's, to the API server.
        "Internal error occurred: error sending request: Post \"https://",
        "no preferred addresses found",
        "dial unix /run/containerd/containerd.sock",
        "proxy error from ",
    ];
    WORDS.iter().any(|w| text.contains(w)).then(|| Refusal::Node(said(text)))
}

/// What somebody between kubectl and the node answered. The server's own reasons come in the same
/// envelope. The last of the words are kubectl 1.30's before 1.30.4, which knows no websocket through a
/// proxy that is spoken to over TLS, and doesn't try SPDY by itself.
fn upgrade(text: &str) -> Option<Refusal> {
    const WORDS: [&str; 3] =
        ["unable to upgrade connection", "websocket: bad handshake", "proxy: unknown scheme: https"];
    let known: [Parser; 6] = [no_container, node, no_program, unreachable, slow, credentials];
    (WORDS.iter().any(|w| text.contains(w)) && known.iter().all(|parse| parse(text).is_none()))
        .then(|| Refusal::Upgrade(said(text)))
}

/// Over websockets kubectl says so; over SPDY it ends with 0 and not a word.
fn cut(text: &str) -> Option<Refusal> {
    text.contains("error reading from error stream: ").then(|| Refusal::Cut(said(text)))
}

fn exited(text: &str) -> Option<Refusal> {
    let code = text.lines().find_map(|l| l.strip_prefix("command terminated with exit code "))?;
    code.trim().parse().ok().map(Refusal::Exited)
}

/// What no other parser claims and is a denial all the same.
fn forbidden(text: &str) -> Option<Refusal> {
    (text.contains("(Forbidden)") || text.contains(" is forbidden: ")).then(|| Refusal::Forbidden(said(text)))
}

/// The first uid that a denial says would be allowed. Policies spell it as a list (`"36096|37887"`)
/// or as ranges (`[1000750000, 1000759999]`): the first number is allowed in either.
#[must_use]
pub fn allowed_uid(words: &str) -> Option<Uid> {
    const BEFORE: [&str; 3] =
        ["Allowed runAsUser values are:", "runAsUser: Invalid value: ", "Allowed runAsUser: {\"ranges\": [{"];
    let rest = BEFORE.iter().find_map(|b| words.split_once(b)).map(|(_, rest)| rest)?;
    // `Invalid value: 0: must be in the ranges: [1000, 2000]`: the refused value comes first.
    let rest = match rest.split_once("must be in the ranges: ") {
        Some((_, ranges)) => ranges,
        None if words.contains("Invalid value: ") => return None,
        None => rest.split_once("\"min\": ").map_or(rest, |(_, min)| min),
    };
    let digits: String =
        rest.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    // Far from its phrase a number means something else.
    let near = rest.find(|c: char| c.is_ascii_digit()).is_some_and(|at| at < 40);
    digits.parse().ok().map(Uid).filter(|uid| near && !uid.is_root())
}

impl Refusal {
    /// The server's or kubectl's own words, for a person.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Rbac(right) => right.to_string(),
            Self::PodSecurity { words, .. }
            | Self::Frozen { words, .. }
            | Self::Policy { words, .. }
            | Self::WebhookDenied { words, .. }
            | Self::WebhookFailed { words, .. }
            | Self::Quota(words)
            | Self::Constraint(words)
            | Self::Invalid(words)
            | Self::NotFound(words)
            | Self::NoSubresource(words)
            | Self::Unreachable(words)
            | Self::Slow(words)
            | Self::Credentials(words)
            | Self::Kubeconfig(words)
            | Self::NoProgram(words)
            | Self::NoContainer(words)
            | Self::Node(words)
            | Self::Upgrade(words)
            | Self::Cut(words)
            | Self::Forbidden(words) => words.clone(),
            Self::Conflict => "somebody else writes to the pod at the same time".to_owned(),
            Self::Exited(code) => format!("the command in the container ended with exit code {code}"),
        }
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} cannot {} {}", self.user, self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => write!(f, " at the cluster scope"),
        }
    }
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "refusal_corpus_tests.rs"]
mod corpus;
