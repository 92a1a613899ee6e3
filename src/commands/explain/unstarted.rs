//! Why a seat that is stored doesn't run: the kubelet's, the runtime's or the registry's words, what they
//! mean, and what helps.

use crate::commands::Session;
use crate::error::{Failure, Kind};
use crate::kubectl::Started;
use crate::ladder::Trouble;
use crate::pod::{Pod, State};
use crate::report::attach::Step;
use crate::seat::wait::wants_login;
use crate::spec::ephemeral::Plan;

/// What the kernel says of a program for another kind of processor.
const FOREIGN: &str = "exec format error";

pub(in crate::commands) fn explain(
    session: &Session<'_>,
    pod: &Pod,
    plan: &Plan,
    trouble: &Trouble,
    steps: &[Step],
) -> Failure {
    let (name, words) = (pod.name(), trouble.words());
    let describe = session.command(&["describe", "pod", name]);
    let another = session.again(&format!("{name} --image IMAGE"));
    match trouble {
        Trouble::Image(_) => {
            let mut failure = Failure::cluster(format!("the seat's image can't be had: {words}"));
            if wants_login(&words.message) {
                failure = failure.because(pull_secrets(pod, &plan.image));
            }
            failure
                .because(format!(
                    "node {} was to pull {}; the kubelet goes on trying, and a later attach enters the seat if it starts",
                    pod.node(),
                    plan.image
                ))
                .hint(another)
        }
        Trouble::Start(_) => {
            let failure = Failure::cluster(format!("the seat's image can't be started: {words}"));
            if words.message.contains(FOREIGN) {
                return failure.because(foreign(session, pod, plan)).hint(another);
            }
            failure
                .because(format!("{} isn't a seat image, or not one for node {}", plan.image, pod.node()))
                .hint(another)
        }
        Trouble::Config(_) => {
            Failure::cluster(format!("the kubelet refuses the seat: {words}")).hint(describe)
        }
        Trouble::Target(_) => Failure::cluster(format!(
            "container {} of pod {name} ended before the seat could start: {words}",
            plan.target
        ))
        .because(
            "a seat lives and dies with its target; the kubelet goes on trying, and a later attach enters the seat if \
             it starts",
        )
        .hint(session.command(&["logs", name, "-c", &plan.target, "--previous"]))
        .hint(session.again(&format!("{name} -c {} --wait-start", plan.target))),
        Trouble::Ended(_) => {
            let failure = Failure::cluster(format!("the seat started and ended: {words}"));
            let target = pod.container(&plan.target);
            let why = match target.map(|c| (c.state(), c.last_exit())) {
                Some((State::Running, Some(last))) => format!(
                    "{} was restarted after exit code {}, and a seat goes with its target",
                    plan.target, last.code
                ),
                Some((State::Running, None)) | None => {
                    let seat = steps.iter().rev().find_map(|s| s.burnt.as_deref()).unwrap_or_default();
                    return ended(session, pod, plan, seat, failure);
                }
                Some((State::Waiting { .. } | State::Terminated { .. } | State::Unknown, _)) => {
                    return failure
                        .because(format!("{} ended, and a seat goes with its target", plan.target))
                        .hint(describe);
                }
            };
            failure.because(why).hint(session.again(name))
        }
        Trouble::Late(_) => {
            let mut failure = Failure::cluster(format!("the seat didn't start in time: {words}"));
            failure.kind = Kind::Deadline;
            failure
                .because(format!(
                    "it is stored, and node {} may still start it; a later attach then enters it",
                    pod.node()
                ))
                .hint(describe)
        }
        Trouble::Gone(_) => Failure::cluster(words.to_string()).hint(session.command(&["get", "pods"])),
    }
}

/// A seat that ended while its target runs: its own last words say more than its exit code.
pub(in crate::commands) fn ended(
    session: &Session<'_>,
    pod: &Pod,
    plan: &Plan,
    seat: &str,
    mut failure: Failure,
) -> Failure {
    let tail = super::log_tail(session, pod.name(), seat);
    if let Some(tail) = &tail {
        failure = failure.because(format!("its last words:\n{tail}"));
    }
    if tail.is_some_and(|tail| tail.contains(FOREIGN)) {
        return failure
            .because(foreign(session, pod, plan))
            .hint(session.again(&format!("{} --image IMAGE", pod.name())));
    }
    let state = pod.container(seat).map(|c| c.state());
    let why = match state {
        // An agent ends so when it is asked to.
        Some(State::Terminated { code: 0, .. }) => {
            "somebody has ended it, as podbench detach does".to_owned()
        }
        _ => format!("{} may not be a seat image", plan.image),
    };
    failure.because(why).hint(session.again(pod.name()))
}

/// The image against the node. Reading nodes is a right that few have.
fn foreign(session: &Session<'_>, pod: &Pod, plan: &Plan) -> String {
    let node = session.kubectl.get("node", pod.node(), "which architecture").and_then(Started::finish).ok();
    let arch = node.as_ref().and_then(|n| n.pointer("/status/nodeInfo/architecture")?.as_str());
    let arch = arch.filter(|a| a.bytes().all(|b| b.is_ascii_alphanumeric()));
    let node = arch.map_or_else(|| pod.node().to_owned(), |arch| format!("{}, which is {arch}", pod.node()));
    format!("the programs of {} are for another architecture than that of node {node}", plan.image)
}

/// Who would be let in, where a registry wants a login: the pod's secrets count, and those are fixed.
fn pull_secrets(pod: &Pod, image: &str) -> String {
    let list = pod.value().pointer("/spec/imagePullSecrets").and_then(serde_json::Value::as_array);
    let names: Vec<&str> =
        list.map_or(&[][..], Vec::as_slice).iter().filter_map(|s| s.get("name")?.as_str()).collect();
    let have = match names.as_slice() {
        [] => "has no pull secret".to_owned(),
        [one] => format!("has one pull secret, {one}, which doesn't open it"),
        more => format!("has the pull secrets {}, of which none opens it", more.join(", ")),
    };
    format!(
        "{} wants a login: pod {} {have}, and a running pod can't get another; an image that its node has, or in a \
         registry without a login, works",
        registry(image),
        pod.name()
    )
}

/// The host of an image's name.
fn registry(image: &str) -> &str {
    match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        Some(_) | None => "docker.io",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_registry_of_an_image_is_its_host_and_docker_hub_without_one() {
        for (image, host) in [
            ("registry.corp:5000/team/seat:1", "registry.corp:5000"),
            ("localhost/seat", "localhost"),
            ("team/seat:1", "docker.io"),
            ("seat", "docker.io"),
            ("quay.io/team/seat@sha256:00", "quay.io"),
        ] {
            assert_eq!(registry(image), host, "{image}");
        }
    }

    #[test]
    fn the_pull_secrets_that_a_pod_has_are_named() {
        let said = |secrets: serde_json::Value| {
            let pod = Pod::new(json!({
                "metadata": {"name": "api", "namespace": "demo", "uid": "u-1", "resourceVersion": "1"},
                "spec": {"containers": [{"name": "app"}], "imagePullSecrets": secrets},
            }));
            pull_secrets(&pod.unwrap(), "quay.io/a/b")
        };
        assert!(said(json!(null)).contains("quay.io wants a login: pod api has no pull secret"));
        assert!(said(json!([{"name": "a"}])).contains("one pull secret, a,"));
        assert!(said(json!([{"name": "a"}, {"name": "b"}])).contains("the pull secrets a, b,"));
    }

    #[test]
    fn a_seat_that_was_asked_to_end_is_no_reason_to_doubt_its_image() {
        let said = |code: i64| {
            let pod = Pod::new(json!({
                "metadata": {"name": "api", "namespace": "demo", "uid": "u-1"},
                "spec": {"containers": [{"name": "app"}], "ephemeralContainers": [{"name": "podbench-1"}]},
                "status": {"ephemeralContainerStatuses": [
                    {"name": "podbench-1", "state": {"terminated": {"exitCode": code}}}]},
            }));
            let (kubectl, _) = crate::kubectl::fake::kubectl(|_, _| crate::kubectl::fake::fails("no logs"));
            let settings = crate::settings::Settings::bare("/nonexistent");
            let (cluster, ui) = (crate::settings::Cluster::default(), crate::ui::Ui::new(&settings));
            let verb = crate::commands::Running::Attach;
            let session = Session { settings: &settings, cluster: &cluster, kubectl: &kubectl, verb, ui };
            let failure = Failure::cluster("podbench-1 ended");
            ended(&session, &pod.unwrap(), &Plan::sample(), "podbench-1", failure).causes.join(" ")
        };
        assert!(said(0).contains("somebody has ended it") && !said(0).contains("image"), "{}", said(0));
        assert!(said(127).contains("may not be a seat image"));
    }
}
