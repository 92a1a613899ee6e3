//! Which pod. An exact name is asked for with `get` alone, so a user without `list` gets there; a
//! part of a name, or nothing, lists.

use std::time::Instant;

use podbench_contract::env;
use podbench_contract::text::escape;
use serde_json::Value;

use super::Session;
use crate::error::Failure;
use crate::kubectl::refusal::Refusal;
use crate::kubectl::{Context, Error, Kubectl, Started, plugin};
use crate::pod::{Pod, State, is_dns};
use crate::report::table::Table;
use crate::report::time::{age, seconds};
use crate::seat::inventory::Inventory;

/// The pod, the context it is in, and who is asking.
pub struct Picked {
    /// The pod.
    pub pod: Pod,
    /// How its name was arrived at, where it wasn't typed whole.
    pub why: Option<String>,
    /// The context.
    pub context: Context,
    /// What the API server calls the user, where it says.
    pub owner: Option<String>,
    /// What a person should know about it, one line each.
    pub warnings: Vec<String>,
}

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Query {
    Nothing,
    /// A pod's name or a part of one.
    Name(String),
    /// Something that has pods.
    Owner(&'static str, String),
}

/// What is asked beside a verb's first call, which has the terminal.
pub(super) struct Around<'k> {
    /// The context; without a name inside a pod. `None`: it can't be read.
    pub(super) context: Option<Context>,
    /// Who is asking, where it is being asked already.
    whoami: Option<Started<'k, String>>,
}

impl<'k> Around<'k> {
    /// Asks, and pins the context.
    pub(super) fn ask(session: &Session<'k>) -> Result<Self, Failure> {
        let kubectl = session.kubectl;
        // A plugin would run twice at once, and might ask a person twice; its credential is cached once
        // the first call is through.
        let mut whoami =
            if plugin::is_possible(session.settings, session.cluster) { None } else { kubectl.whoami().ok() };
        let context = match kubectl.context()?.finish() {
            Err(Error::Interrupted) => return Err(Error::Interrupted.into()),
            // Inside a pod there is no kubeconfig, and kubectl takes the pod's own namespace.
            Err(_) => session.settings.pod_namespace.as_deref().map(nameless),
            Ok(context) => Some(context),
        };
        if let Some(context) = &context {
            kubectl.pin(context);
        }
        if whoami.is_none() && context.as_ref().is_some_and(|c| c.plugin.is_none()) {
            whoami = kubectl.whoami().ok();
        }
        Ok(Self { context, whoami })
    }

    /// Who is asking, for a verb that lands nothing: no answer is a warning. After the first call.
    pub(super) fn owner(self, session: &Session<'k>) -> Result<(Option<String>, Option<String>), Failure> {
        Ok(match who(session.kubectl, self.whoami)? {
            Who::Known(name) => (Some(name), None),
            Who::Unknown { why, .. } => (
                None,
                Some(format!("the cluster doesn't say who you are ({why}): yours are found by your key")),
            ),
        })
    }
}

/// A pod that was asked for by its whole name.
pub(super) enum Exact {
    /// It is there.
    Pod(Box<Picked>),
    /// It isn't, in the server's words.
    Gone {
        /// Where it was looked for.
        context: Context,
        /// The server's words.
        words: String,
    },
}

/// The pod of this whole name and no other: to a verb that takes things back, a neighbour whose name
/// has it in it is another pod.
pub(super) fn exactly(session: &Session<'_>, name: &str) -> Result<Exact, Failure> {
    let kubectl = session.kubectl;
    let first = kubectl.get_pod(name)?;
    let Around { context, whoami } = Around::ask(session)?;
    match first.finish() {
        Ok(value) => Ok(Exact::Pod(Box::new(picked(kubectl, one(value)?, None, context, whoami)?))),
        Err(Error::Refused(Refusal::NotFound(words))) => {
            let context = context.unwrap_or_else(|| nameless(kubectl.namespace().unwrap_or_default()));
            Ok(Exact::Gone { context, words })
        }
        Err(error) => Err(error.into()),
    }
}

/// Finds it. The pod, the context and the user are asked for side by side.
///
/// # Errors
/// When there is no such pod, there are several, or the cluster says no.
pub fn pod(session: &Session<'_>, asked: Option<&str>, prompt: bool) -> Result<Picked, Failure> {
    pod_of(session, asked, prompt, Of::All)
}

/// Among which pods one is chosen where nobody names any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// All of the namespace.
    All,
    /// Those with a seat: for a verb that lands none.
    Seats,
}

/// As [`pod`], among some.
pub(super) fn pod_of(
    session: &Session<'_>,
    asked: Option<&str>,
    prompt: bool,
    of: Of,
) -> Result<Picked, Failure> {
    let query = parse(asked)?;
    let kubectl = session.kubectl;
    // First, so that a credential plugin has the terminal.
    let first = first(kubectl, &query)?;
    let Around { context, whoami } = Around::ask(session)?;
    let (pod, why) = match first.finish() {
        Ok(value) => found(session, &query, value, prompt, of)?,
        Err(Error::Refused(Refusal::NotFound(words))) => match &query {
            // The namespace that isn't there is no reason to list it.
            Query::Name(_) if words.starts_with("namespaces ") => return Err(no_namespace(session, &words)),
            Query::Name(name) => among(session, name, prompt)?,
            Query::Nothing | Query::Owner(..) => return Err(Failure::cluster(words)),
        },
        Err(error) => {
            let from_plugin =
                matches!(error, Error::Deadline { .. } | Error::Refused(Refusal::Credentials(_)));
            let plugin = context.as_ref().and_then(|c| c.plugin.as_deref()).filter(|_| from_plugin);
            let failure = denied(error, &query);
            return Err(match plugin {
                Some(program) => failure.because(format!(
                    "the kubeconfig has its credentials from `{}`, which kubectl runs first",
                    escape(program, 200)
                )),
                None => failure,
            });
        }
    };
    picked(kubectl, pod, why, context, whoami)
}

/// The pod, and what was asked around it.
fn picked(
    kubectl: &Kubectl,
    pod: Pod,
    why: Option<String>,
    context: Option<Context>,
    whoami: Option<Started<'_, String>>,
) -> Result<Picked, Failure> {
    let context = context.unwrap_or_else(|| nameless(pod.namespace()));
    kubectl.pin(&context);
    let (owner, warnings) = owner(kubectl, whoami)?;
    Ok(Picked { pod, why, context, owner, warnings })
}

/// The context of whoever has no kubeconfig.
fn nameless(namespace: &str) -> Context {
    Context { namespace: namespace.to_owned(), ..Context::default() }
}

/// What the server says of who is asking.
enum Who {
    Known(String),
    /// It doesn't. `passing`: it may, the next time it is asked.
    Unknown {
        why: String,
        passing: Option<Error>,
    },
}

/// Asks, a second time where the first came to nothing.
fn who(kubectl: &Kubectl, first: Option<Started<'_, String>>) -> Result<Who, Failure> {
    let passing = |error: &Error| {
        matches!(
            error,
            Error::Deadline { .. }
                | Error::Refused(Refusal::Unreachable(_) | Refusal::Slow(_) | Refusal::Credentials(_))
        )
    };
    let mut answer = match first {
        Some(first) => first.finish(),
        None => kubectl.whoami().and_then(Started::finish),
    };
    if answer.as_ref().is_err_and(passing) {
        answer = kubectl.whoami().and_then(Started::finish);
    }
    let error = match answer {
        // What can't be read back from a seat's environment would never be found again.
        Ok(owner) => {
            let why = || "its name for you can't stand in a seat's environment".to_owned();
            let known = env::OWNER.parse(Some(&owner)).map(Who::Known);
            return Ok(known.unwrap_or_else(|| Who::Unknown { why: why(), passing: None }));
        }
        Err(Error::Interrupted) => return Err(Error::Interrupted.into()),
        Err(error) => error,
    };
    let why = escape(error.to_string().lines().next().unwrap_or_default(), 200);
    // An old server has no such review, and a user may be denied it.
    Ok(Who::Unknown { why, passing: Some(error).filter(passing) })
}

/// Who is asking, for a seat. A failure that passes isn't an answer: without an owner every run would
/// land one more seat, for the pod's life.
fn owner(
    kubectl: &Kubectl,
    first: Option<Started<'_, String>>,
) -> Result<(Option<String>, Vec<String>), Failure> {
    match who(kubectl, first)? {
        Who::Known(owner) => Ok((Some(owner), Vec::new())),
        Who::Unknown { passing: Some(error), .. } => Err(Failure::from(error)
            .because("who is asking isn't known, and a seat is its owner's: nothing was written")),
        Who::Unknown { why, passing: None } => {
            let warning = format!(
                "the cluster doesn't say who you are ({why}): the seat names no owner, and only your key finds it again"
            );
            Ok((None, vec![warning]))
        }
    }
}

/// How a pod is spelled before the slash.
const PODS: [&str; 3] = ["pod", "pods", "po"];

/// What was typed, without the word that says it is a pod.
pub(super) fn bare(asked: &str) -> &str {
    match asked.split_once('/') {
        Some((kind, name)) if PODS.contains(&kind) => name,
        _ => asked,
    }
}

fn parse(asked: Option<&str>) -> Result<Query, Failure> {
    let Some(asked) = asked else { return Ok(Query::Nothing) };
    let (kind, name) = asked.split_once('/').unwrap_or((PODS[0], asked));
    let kind = match kind {
        kind if PODS.contains(&kind) => None,
        "deploy" | "deployment" | "deployments" | "deployment.apps" | "deployments.apps" => {
            Some("deployment")
        }
        "sts" | "statefulset" | "statefulsets" | "statefulset.apps" => Some("statefulset"),
        "ds" | "daemonset" | "daemonsets" | "daemonset.apps" => Some("daemonset"),
        "rs" | "replicaset" | "replicasets" | "replicaset.apps" => Some("replicaset"),
        "job" | "jobs" | "job.batch" => Some("job"),
        "svc" | "service" | "services" => Some("service"),
        other => {
            let message = format!("podbench finds no pod by a `{}`", escape(other, 60));
            return Err(
                Failure::input(message).because("it takes pod/, deploy/, sts/, ds/, rs/, job/ and svc/")
            );
        }
    };
    if name.is_empty() && asked.contains('/') {
        return Err(
            Failure::input(format!("{asked} needs a name")).because("such as pod/NAME or deploy/NAME")
        );
    }
    // It becomes a word of kubectl's command line: what can't be in a name is refused here. A part of
    // one, in any case, is less than `is_dns` asks for.
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.';
    if name.is_empty() || name.len() > 253 || !name.bytes().all(plain) {
        return Err(Failure::input(format!("`{}` can't be a part of a name", escape(name, 80)))
            .because("names are made of a-z, 0-9, - and ."));
    }
    Ok(match kind {
        Some(kind) if is_dns(name) => Query::Owner(kind, name.to_owned()),
        Some(kind) => return Err(Failure::input(format!("`{name}` can't be the name of a {kind}"))),
        None => Query::Name(name.to_owned()),
    })
}

fn first<'k>(kubectl: &'k Kubectl, query: &Query) -> Result<Started<'k, Value>, Error> {
    match query {
        Query::Name(name) if is_dns(name) => kubectl.get_pod(name),
        Query::Name(_) | Query::Nothing => kubectl.list_pods(None),
        Query::Owner(kind, name) => kubectl.get(kind, name, "whose pods they are"),
    }
}

/// What the first answer amounts to.
fn found(
    session: &Session<'_>,
    query: &Query,
    value: Value,
    prompt: bool,
    of: Of,
) -> Result<(Pod, Option<String>), Failure> {
    match query {
        Query::Name(name) if is_dns(name) => Ok((one(value)?, None)),
        Query::Name(name) => choose(session, list(value)?, Some(name), prompt),
        Query::Nothing => {
            let mut pods = list(value)?;
            if of == Of::Seats {
                pods.retain(|pod| !Inventory::of(pod).seats.is_empty());
                if pods.is_empty() {
                    return Err(Failure::input(format!("no pod{} has a seat", session.place()))
                        .hint(session.verb("list", "")));
                }
                if pods.len() == 1
                    && let Some(pod) = pods.pop()
                {
                    let why = "the only one there with a seat";
                    session.ui.note(&format!("using pod {}, {why}", pod.name()));
                    return Ok((pod, Some(why.to_owned())));
                }
            }
            choose(session, pods, None, prompt)
        }
        Query::Owner(kind, name) => of_owner(session, kind, name, &value),
    }
}

fn one(value: Value) -> Result<Pod, Failure> {
    Pod::new(value).map_err(|e| Failure::cluster(e.to_string()))
}

pub(super) fn list(mut value: Value) -> Result<Vec<Pod>, Failure> {
    match value.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items.into_iter().map(one).collect(),
        _ => Err(Failure::cluster("kubectl's answer isn't a list of pods")),
    }
}

/// No pod has that name: the ones that have it in theirs.
fn among(session: &Session<'_>, name: &str, prompt: bool) -> Result<(Pod, Option<String>), Failure> {
    let pods = match session.kubectl.list_pods(None)?.finish() {
        Ok(value) => list(value)?,
        Err(error @ Error::Refused(Refusal::Rbac(_))) => {
            let place = session.place();
            return Err(Failure::from(error).because(format!(
                "there is no pod `{name}`{place}, and finding one by a part of its name needs `list`"
            )));
        }
        Err(error) => return Err(error.into()),
    };
    choose(session, pods, Some(name), prompt)
}

fn choose(
    session: &Session<'_>,
    pods: Vec<Pod>,
    part: Option<&str>,
    prompt: bool,
) -> Result<(Pod, Option<String>), Failure> {
    let place = session.place();
    let wanted = part.map(str::to_ascii_lowercase);
    let all: Vec<String> = pods.iter().map(|p| p.name().to_owned()).collect();
    let mut pods: Vec<Pod> =
        pods.into_iter().filter(|p| wanted.as_ref().is_none_or(|w| p.name().contains(w.as_str()))).collect();
    if pods.len() > 1 {
        let rows: Vec<[String; 4]> = pods.iter().map(row).collect();
        let what = part.map_or_else(
            || format!("there are {} pods{place} to choose from", pods.len()),
            |p| format!("{} pods have `{p}` in their name{place}", pods.len()),
        );
        if !(prompt && session.ui.can_ask()) {
            let mut failure = Failure::input(what).because(table(&rows));
            if let Some(first) = pods.first() {
                failure = failure.hint(session.again(first.name()));
            }
            return Err(failure);
        }
        // The table's head belongs to the question, or it could be picked.
        let lines: Vec<String> = table(&rows).lines().skip(1).map(str::to_owned).collect();
        let asked = Instant::now();
        let answer = session.ui.pick(&format!("{what}; which one?"), &lines);
        session.kubectl.thought(asked.elapsed());
        return match answer? {
            Some(at) if at < pods.len() => Ok((pods.swap_remove(at), None)),
            Some(_) | None => Err(Failure::input("no pod was picked")),
        };
    }
    let Some(pod) = pods.pop() else {
        let message = part.map_or_else(
            || format!("there is no pod{place}"),
            |p| format!("no pod has `{}` in its name{place}", escape(p, 80)),
        );
        let mut failure = Failure::input(message);
        if !all.is_empty() {
            failure = failure.because(format!("pods there: {}", shorten(&all)));
        }
        return Err(failure.hint(session.command(&["get", "pods"])));
    };
    let why = part.map_or_else(|| "the only pod there".to_owned(), |p| format!("the only match for `{p}`"));
    session.ui.note(&format!("using pod {}, {why}", pod.name()));
    Ok((pod, Some(why)))
}

/// A pod of a Deployment, StatefulSet, Service…: the first that is ready, as kubectl chooses.
fn of_owner(
    session: &Session<'_>,
    kind: &str,
    name: &str,
    owner: &Value,
) -> Result<(Pod, Option<String>), Failure> {
    let selector = selector(owner).ok_or_else(|| {
        Failure::input(format!("{kind} {name} selects no pods"))
            .hint(session.command(&["get", kind, name, "-o", "yaml"]))
    })?;
    let value = session.kubectl.list_pods(Some(&selector))?.finish()?;
    let Some((pod, why)) = first_of(list(value)?) else {
        return Err(Failure::cluster(format!("{kind} {name} has no pods"))
            .hint(session.command(&["describe", kind, name])));
    };
    let why = format!("{why} of {kind} {name}");
    session.ui.note(&format!("using pod {}, {why}", pod.name()));
    Ok((pod, Some(why)))
}

/// The first that is ready, else the first; and which one that is.
fn first_of(mut pods: Vec<Pod>) -> Option<(Pod, String)> {
    pods.sort_by_key(|p| (!is_ready(p), p.name().to_owned()));
    let count = pods.len();
    let pod = pods.into_iter().next()?;
    let why = match (count, is_ready(&pod)) {
        (1, _) => "the only pod".to_owned(),
        (_, true) => format!("the first ready one of {count} pods"),
        (_, false) => format!("none is ready, so the first of {count} pods"),
    };
    Some((pod, why))
}

fn is_ready(pod: &Pod) -> bool {
    pod.condition("Ready").and_then(|c| c.get("status")).is_some_and(|s| s == "True")
}

/// An object's label selector, as `--selector` spells it: a Service's plain map, or `matchLabels`
/// and `matchExpressions`.
fn selector(owner: &Value) -> Option<String> {
    let selector = owner.pointer("/spec/selector")?;
    let plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b))
    };
    let mut parts = Vec::new();
    let labels = selector
        .get("matchLabels")
        .or_else(|| selector.get("matchExpressions").is_none().then_some(selector));
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().filter(|v| v.is_empty() || plain(v))?;
        parts.push(format!("{key}={value}"));
    }
    for rule in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = rule.get("key").and_then(Value::as_str).filter(|k| plain(k))?;
        let values: Vec<&str> = rule
            .get("values")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        parts.push(match rule.get("operator").and_then(Value::as_str)? {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    (!parts.is_empty()).then(|| parts.join(","))
}

fn denied(error: Error, query: &Query) -> Failure {
    let hint = match (&error, query) {
        (Error::Refused(Refusal::Rbac(_)), Query::Nothing) => Some("a pod's whole name needs `get` alone"),
        _ => None,
    };
    let failure = Failure::from(error);
    hint.map_or(failure.clone(), |h| failure.because(h))
}

fn no_namespace(session: &Session<'_>, words: &str) -> Failure {
    Failure::input(words.to_owned()).hint(session.bare(&["get", "namespaces"]))
}

fn shorten(names: &[String]) -> String {
    const MOST: usize = 12;
    let text = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(MOST) {
        None | Some(0) => text,
        Some(more) => format!("{text} and {more} more"),
    }
}

/// NAME, READY, STATUS, AGE.
fn row(pod: &Pod) -> [String; 4] {
    let regular: Vec<_> =
        pod.containers().into_iter().filter(|c| c.kind == crate::pod::Kind::Regular).collect();
    let ready = regular.iter().filter(|c| c.ready()).count();
    let waiting = regular.iter().find_map(|c| match c.state() {
        State::Waiting { reason, .. } if !reason.is_empty() => Some(reason),
        _ => None,
    });
    let status = if pod.is_being_deleted() {
        "Terminating".to_owned()
    } else {
        waiting.unwrap_or_else(|| escape(pod.phase(), 40))
    };
    let age = seconds(pod.created()).map_or_else(|| "?".to_owned(), age);
    [pod.name().to_owned(), format!("{ready}/{}", regular.len()), status, age]
}

fn table(rows: &[[String; 4]]) -> String {
    let rows = rows.iter().map(|row| row.to_vec()).collect();
    let table = Table { head: vec!["NAME", "READY", "STATUS", "AGE"], rows, shrinks: 0 };
    table.text(None).trim_end().to_owned()
}

#[cfg(test)]
#[path = "pick_tests.rs"]
mod tests;
