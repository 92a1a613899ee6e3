//! A right that is missing is seldom the only one: the others are asked for at once, so that whoever
//! grants them is asked once.

use std::time::Duration;

use crate::commands::{Running, Session};
use crate::error::Failure;
use crate::kubectl::rbac_hints;
use crate::kubectl::refusal::Right;

/// What a seat can't be entered without, and what landing one takes beyond that.
const ENTER: [(&str, &str); 2] = [("get", "pods"), ("create", "pods/exec")];
const LAND: [(&str, &str); 1] = [("update", "pods/ephemeralcontainers")];
/// How long the server may take to answer these side by side; what isn't known by then isn't told.
const LIMIT: Duration = Duration::from_secs(5);

/// The rights without which the verb comes to nothing; none where nothing else is asked for.
fn needed(verb: Running<'_>) -> Vec<(&'static str, &'static str)> {
    let lands = match verb {
        Running::Attach => true,
        Running::Ssh(args) => !args.seat.no_attach,
        Running::Cp(args) => !args.seat.no_attach,
        Running::SshConfig | Running::Status | Running::List | Running::Detach | Running::Clean => {
            return Vec::new();
        }
    };
    ENTER.into_iter().chain(LAND.into_iter().filter(|_| lands)).collect()
}

/// The same failure with the other rights that the verb needs and that are missing too. Nothing is
/// asked where no right of that namespace's is what is missing, or the verb enters no seat.
pub(in crate::commands) fn complete(session: &Session<'_>, failure: Failure) -> Failure {
    let needed = needed(session.verb);
    if needed.is_empty() {
        return failure;
    }
    let Some(first) = failure.lacks.as_deref().cloned() else { return failure };
    let Some(namespace) = first.namespace.clone() else { return failure };
    let others =
        needed.into_iter().filter(|(verb, resource)| (*verb, *resource) != (&first.verb, &first.resource));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Verb;

    fn of(line: &[&str]) -> String {
        let cli =
            crate::cli::parse(line.iter().map(Into::into)).unwrap_or_else(|e| panic!("{}", e.text(false)));
        let needed = match &cli.verb {
            Verb::Ssh(args) => needed(Running::Ssh(args)),
            Verb::Cp(args) => needed(Running::Cp(args)),
            _ => panic!("another verb"),
        };
        needed.iter().map(|(verb, resource)| format!("{verb} {resource}")).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn only_who_may_land_a_seat_is_told_about_the_right_to_write_one() {
        let enter = "get pods, create pods/exec";
        let land = "get pods, create pods/exec, update pods/ephemeralcontainers";
        assert_eq!(of(&["podbench", "ssh", "api"]), land);
        assert_eq!(of(&["podbench", "cp", "a", "api:"]), land);
        assert_eq!(of(&["podbench", "ssh", "api", "--no-attach"]), enter);
        assert_eq!(of(&["podbench", "cp", "a", "api:", "--no-attach"]), enter);
        assert_eq!(needed(Running::Attach).len(), 3);
        assert!(needed(Running::SshConfig).is_empty());
    }
}
