//! A right that is missing is seldom the only one: the others are asked for at once, so that whoever
//! grants them is asked once.

use std::time::Duration;

use super::Session;
use crate::error::Failure;
use crate::kubectl::rbac_hints;
use crate::kubectl::refusal::Right;

/// What no seat can be landed and entered without.
const NEEDED: [(&str, &str); 3] =
    [("get", "pods"), ("update", "pods/ephemeralcontainers"), ("create", "pods/exec")];
/// How long the server may take to answer these side by side; what isn't known by then isn't told.
const LIMIT: Duration = Duration::from_secs(5);

/// The same failure with the other rights that `attach` needs and that are missing too. Nothing is
/// asked where no right of that namespace's is what is missing, or the verb lands no seat.
pub(super) fn complete(session: &Session<'_>, failure: Failure) -> Failure {
    if !matches!(session.verb, "attach" | "ssh") {
        return failure;
    }
    let Some(first) = failure.lacks.as_deref().cloned() else { return failure };
    let Some(namespace) = first.namespace.clone() else { return failure };
    let others =
        NEEDED.into_iter().filter(|(verb, resource)| (*verb, *resource) != (&first.verb, &first.resource));
    // All are started before one is waited for.
    let asked: Vec<_> = others
        .map(|(verb, resource)| (verb, resource, session.kubectl.may(&namespace, verb, resource)))
        .collect();
    let lacks = |(verb, resource, answer): (&str, &str, Result<crate::kubectl::Started<'_, bool>, _>)| {
        let denied = answer.ok()?.finish_within(LIMIT).ok().is_some_and(|allowed| !allowed);
        denied.then(|| Right {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            group: String::new(),
            ..first.clone()
        })
    };
    let missing: Vec<Right> = asked.into_iter().filter_map(lacks).collect();
    if missing.is_empty() {
        return failure;
    }
    let named: Vec<String> = missing.iter().map(|r| format!("{} {}", r.verb, r.resource)).collect();
    let failure = failure.because(format!("missing too, for the same: {}", named.join(", ")));
    missing.iter().fold(failure, rbac_hints)
}
