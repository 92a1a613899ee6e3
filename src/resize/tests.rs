use std::sync::Mutex;

use serde_json::json;

use super::*;
use crate::cli::Size;
use crate::kubectl::fake::{self, Says, fails, ok, stays};
use crate::settings::{Cluster, Settings};
use crate::ui::Ui;

fn pod(limit: &str, generation: u64, conditions: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "api", "namespace": "demo", "uid": "u-1", "resourceVersion": generation.to_string(),
                     "generation": generation},
        "spec": {"nodeName": "node1", "containers": [{"name": "app", "resources":
            {"requests": {"memory": "16Mi"}, "limits": {"memory": limit}}}]},
        "status": {"observedGeneration": generation, "conditions": conditions, "containerStatuses": [
            {"name": "app", "resources": {"requests": {"memory": "16Mi"}, "limits": {"memory": "64Mi"}}}]},
    })
}

/// A resize of 64Mi to 9Gi; each kubectl call, and whether the machine remembers anything.
fn run(answer: impl Fn(&str) -> Says + Send + Sync + 'static) -> (Outcome, Vec<String>, bool) {
    let home = tempfile::tempdir().unwrap();
    let (kubectl, calls) =
        fake::kubectl(
            move |line, _| {
                if line.contains("limitranges") { ok(json!({"items": []})) } else { answer(line) }
            },
        );
    let (settings, cluster) = (Settings::bare(home.path()), Cluster::default());
    let ui = Ui::new(&settings);
    let session = Session {
        settings: &settings,
        cluster: &cluster,
        kubectl: &kubectl,
        verb: crate::commands::Running::Attach,
        ui,
    };
    let mut pod = Pod::new(pod("64Mi", 1, &json!([]))).unwrap();
    let size = Size { request: None, limit: "9Gi".parse().unwrap() };
    let wish = Wish { resource: Resource::Memory, size };
    let outcome = before_seat(&session, &mut pod, &Caller::default(), "app", &[wish], Mode::Store).unwrap();
    let calls = calls.lock().unwrap().iter().map(|(line, _)| line.clone()).collect();
    let remembers = !journalled(&pod, &settings, &Caller::default()).unwrap().is_empty();
    (outcome, calls, remembers)
}

fn event(pod: &Value) -> String {
    json!({"type": "MODIFIED", "object": pod}).to_string()
}

#[test]
fn an_infeasible_resize_is_taken_back_at_once_and_told_in_the_kubelets_words() {
    let no = json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible", "observedGeneration": 2,
                     "message": "Node didn't have enough capacity: memory"}]);
    let (outcome, calls, remembers) = run(move |line| match line {
        back if back.contains(r#""memory":"64Mi""#) => ok(pod("64Mi", 3, &json!([]))),
        patch if patch.contains("patch pod api --subresource=resize") => ok(pod("9Gi", 2, &json!([]))),
        watch if watch.contains("--watch") => stays(event(&pod("9Gi", 2, &no)), ""),
        other => panic!("{other}"),
    });
    let [warning] = outcome.warnings.as_slice() else { panic!("{outcome:?}") };
    assert!(
        warning.contains("Infeasible: Node didn't have enough capacity: memory")
            && warning.contains("the values from before are back"),
        "{warning}"
    );
    assert_eq!(outcome.resized, None);
    assert_eq!(calls.iter().filter(|c| c.contains("patch pod")).count(), 2);
    assert!(!remembers, "there is nothing to give back");
}

#[test]
fn values_that_cannot_be_put_back_are_told_with_the_command_that_does_it() {
    let no = json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "no"}]);
    let (outcome, _, remembers) = run(move |line| match line {
        back if back.contains(r#""memory":"64Mi""#) => {
            fails("Error from server (Forbidden): a policy says no")
        }
        patch if patch.contains("patch pod api") => ok(pod("9Gi", 2, &json!([]))),
        _ => stays(event(&pod("9Gi", 2, &no)), ""),
    });
    let State::Pending(words) = outcome.resized.unwrap().state else { panic!("it is stored") };
    assert!(words.contains("a policy says no") && words.contains("kubectl patch -n demo pod api"), "{words}");
    assert!(remembers, "it can still be given back");
}

#[test]
fn a_lost_race_is_planned_anew_from_what_is_there_then() {
    let tries = Mutex::new(0);
    let done = |generation| {
        let mut done = pod("9Gi", generation, &json!([]));
        done["status"]["containerStatuses"][0]["resources"]["limits"]["memory"] = "9Gi".into();
        done
    };
    let (outcome, ..) = run(move |line| match line {
        patch if patch.contains("patch pod api") => {
            let mut tries = tries.lock().unwrap();
            *tries += 1;
            if *tries == 1 {
                return fails(
                    "Error from server (Conflict): Operation cannot be fulfilled on pods \"api\": the object has been \
                     modified; please apply your changes to the latest version and try again",
                );
            }
            assert!(patch.contains(r#""resourceVersion":"5""#), "{patch}");
            ok(done(6))
        }
        watch if watch.contains("--watch") => stays("", ""),
        _ => ok(pod("100Mi", 5, &json!([]))),
    });
    let resized = outcome.resized.unwrap();
    assert_eq!(resized.changes[0].to_string(), "app memory 16Mi:100Mi -> 16Mi:9Gi");
    assert_eq!(resized.state, State::Actual);
}

#[test]
fn a_server_without_the_subresource_is_a_warning() {
    let (outcome, _, remembers) =
        run(|_| fails("Error from server (NotFound): the server could not find the requested resource"));
    assert!(outcome.warnings[0].contains("from Kubernetes 1.33 on"), "{outcome:?}");
    assert!(!remembers);
}

#[test]
fn a_write_whose_answer_is_lost_is_looked_for_and_remembered_whatever_is_seen() {
    for words in ["error: unexpected EOF", "Unable to connect to the server: net/http: TLS handshake timeout"]
    {
        let arrived = move |memory: &'static str| {
            let mut seen = pod(memory, 2, &json!([]));
            seen["status"]["containerStatuses"][0]["resources"]["limits"]["memory"] = memory.into();
            run(move |line| match line {
                patch if patch.contains("patch pod api") => fails(words),
                watch if watch.contains("--watch") => stays("", ""),
                _ => ok(seen.clone()),
            })
        };
        let (there, _, remembers) = arrived("9Gi");
        assert_eq!(there.resized.map(|r| r.state), Some(State::Actual), "{:?}", there.warnings);
        assert!(remembers);
        let (not_yet, calls, remembers) = arrived("64Mi");
        let warning = &not_yet.warnings[0];
        assert!(
            warning.contains("may be stored") && warning.contains("podbench detach api -n demo"),
            "{warning}"
        );
        assert!(remembers, "an answer that is lost is no refusal");
        assert_eq!(calls.iter().filter(|c| c.contains("patch pod")).count(), 1, "it isn't written twice");
    }
}
