//! What helps where every rung was refused: who wrote the rule, and what a seat can't be whatever the
//! rule says. Keyed on who refused; words are looked at for what no seat can have, never for who said them.

use crate::commands::Session;
use crate::error::Failure;
use crate::kubectl::refusal::Refusal;
use crate::pod::Pod;
use crate::report::attach::Step;
use crate::report::text;
use crate::spec::ephemeral::Plan;

/// The rungs and their ends, one line for those that were refused in the same words.
pub(in crate::commands) fn steps(failure: Failure, steps: &[Step]) -> Failure {
    let mut groups: Vec<(String, String)> = Vec::new();
    for step in steps {
        let said = text::outcome(step);
        match groups.last_mut().filter(|(_, before)| *before == said) {
            Some((rungs, _)) => *rungs = format!("{rungs}, {}", step.rung),
            None => groups.push((step.rung.to_string(), said)),
        }
    }
    groups.into_iter().fold(failure, |f, (rungs, said)| f.because(format!("{rungs}: {said}")))
}

/// The way on, after every rung was refused by one of these.
pub(in crate::commands) fn exhausted(
    session: &Session<'_>,
    pod: &Pod,
    plan: &Plan,
    refusals: &[Refusal],
    mut failure: Failure,
) -> Failure {
    let said: Vec<String> = refusals.iter().filter(|r| is_rule(r)).map(Refusal::words).collect();
    if said.iter().any(|words| demands_resources(words)) {
        failure = failure.because(
            "it asks for resources, and an ephemeral container can't have any: only whoever wrote the rule can help, \
             by an exemption for pods/ephemeralcontainers",
        );
    }
    if said.iter().any(|words| is_about_image(words, &plan.image)) {
        failure = failure
            .because(format!(
                "the seat's image is {}; a copy in a registry that is allowed may pass",
                plan.image
            ))
            .hint(session.again(&format!("{} --image IMAGE", pod.name())));
    }
    let hints = failure.hints.len();
    for refusal in refusals {
        let hint = match refusal {
            Refusal::Policy { policy, .. } => {
                session.bare(&["get", "validatingadmissionpolicy", policy, "-o", "yaml"])
            }
            Refusal::WebhookDenied { .. } | Refusal::WebhookFailed { .. } => {
                session.bare(&["get", "validatingwebhookconfigurations,mutatingwebhookconfigurations"])
            }
            Refusal::PodSecurity { .. } => {
                session.bare(&["get", "namespace", pod.namespace(), "--show-labels"])
            }
            Refusal::Quota(_) => session.command(&["describe", "resourcequota"]),
            Refusal::Constraint(_) => session.bare(&["get", "securitycontextconstraints"]),
            Refusal::Frozen { .. }
            | Refusal::Rbac(_)
            | Refusal::Conflict
            | Refusal::Invalid(_)
            | Refusal::NotFound(_)
            | Refusal::NoSubresource(_)
            | Refusal::Unreachable(_)
            | Refusal::Slow(_)
            | Refusal::Credentials(_)
            | Refusal::Kubeconfig(_)
            | Refusal::NoProgram(_)
            | Refusal::NoContainer(_)
            | Refusal::Node(_)
            | Refusal::Upgrade(_)
            | Refusal::Cut(_)
            | Refusal::Exited(_)
            | Refusal::Forbidden(_) => continue,
        };
        if !failure.hints.contains(&hint) {
            failure = failure.hint(hint);
        }
    }
    if failure.hints.len() == hints {
        failure = failure.hint(session.command(&["describe", "pod", pod.name()]));
    }
    failure
}

/// Somebody's own rule, in somebody's own words.
const fn is_rule(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Policy { .. } | Refusal::WebhookDenied { .. })
}

/// The field's path, or how people write about it.
fn demands_resources(words: &str) -> bool {
    let words = words.to_lowercase();
    let path =
        words.contains("/resources/") || words.contains(".resources") || words.contains("resource limits");
    let limit =
        ["memory limit", "cpu limit", "memory request", "cpu request"].iter().any(|w| words.contains(w));
    path || limit || (words.contains("limits") && words.contains("requests"))
}

fn is_about_image(words: &str, image: &str) -> bool {
    let words = words.to_lowercase();
    words.contains(&image.to_lowercase())
        || ["image", "registry", "registries", "repo "].iter().any(|w| words.contains(w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_for_resources_is_seen_in_every_engines_words_and_nowhere_else() {
        for words in [
            "validation error: CPU and memory resource requests and limits are required. rule validate-resources \
             failed at path /spec/ephemeralContainers/0/resources/limits/",
            "[container-must-have-limits] container <podbench-1> has no resource limits",
            "container <podbench-1> has no memory limit",
            "spec.ephemeralContainers[0].resources.limits.memory is required",
        ] {
            assert!(demands_resources(words), "{words}");
        }
        for words in
            ["privileged is not allowed", "runAsUser 0 is over the limit", "images come from registry.corp"]
        {
            assert!(!demands_resources(words), "{words}");
        }
    }

    #[test]
    fn a_rule_about_images_is_told_from_one_about_ids() {
        assert!(is_about_image("images come from registry.corp only", "a/b:1"));
        assert!(is_about_image("container <x> uses A/b:1, which nobody scanned", "a/b:1"));
        assert!(!is_about_image("running as root is not allowed", "a/b:1"));
    }
}
