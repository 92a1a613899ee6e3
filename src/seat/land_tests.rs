use std::sync::atomic::{AtomicUsize, Ordering};

use podbench_contract::ids::{Gid, Uid};
use serde_json::json;

use super::*;
use crate::kubectl::fake::{Calls, Says, fails, kubectl, ok, stays};
use crate::ladder::Facts;
use crate::pod::ids::Ids;
use crate::report::attach::Outcome;

const CONFLICT: &str = include_str!("../kubectl/samples/conflict.txt");
const WATCH_DENIED: &str = include_str!("../kubectl/samples/rbac-watch.txt");
const POD_SECURITY: &str = include_str!("../kubectl/samples/pod-security.txt");
const QUOTA: &str = include_str!("../kubectl/samples/quota.txt");

fn pod(version: &str, seats: &[&str]) -> Value {
    let specs: Vec<Value> = seats.iter().map(|n| json!({"name": n})).collect();
    let statuses: Vec<Value> = seats.iter().map(|n| json!({"name": n, "state": {"running": {}}})).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "api", "namespace": "demo", "uid": "u-1", "resourceVersion": version},
        "spec": {"nodeName": "node1", "containers": [{"name": "app"}], "ephemeralContainers": specs, "future": 1},
        "status": {"containerStatuses": [{"name": "app", "state": {"running": {}}}], "ephemeralContainerStatuses": statuses},
    })
}

fn plan() -> Plan {
    Plan { target_id: None, ..Plan::sample() }
}

fn facts() -> Facts {
    Facts { target: Ids { uid: Some(Uid(7)), gid: Some(Gid(7)) }, ..Facts::default() }
}

/// A server that stores what it is sent and says yes to every review.
fn api(line: &str, stdin: Option<&str>) -> Says {
    if line.contains("selfsubjectaccessreviews") {
        ok(json!({"status": {"allowed": true}}))
    } else if line.contains("replace --raw") {
        ok(stdin.unwrap())
    } else if line.contains("--watch") {
        let event = |seats: &[&str]| json!({"type": "MODIFIED", "object": pod("9", seats)}).to_string();
        stays(format!("{}\n{}\n", event(&[]), event(&["podbench-1"])), "")
    } else {
        panic!("unexpected: {line}")
    }
}

fn walk(kubectl: &Kubectl) -> (Result<Walked, Error>, Ladder, Option<SeatName>) {
    let mut ladder = Ladder::new(facts());
    let landing = Landing::new(kubectl, Duration::from_secs(5));
    let walked = landing.walk(&mut Pod::new(pod("1", &[])).unwrap(), &mut plan(), &mut ladder);
    (walked, ladder, landing.written.get())
}

fn verbs(calls: &Calls) -> Vec<&'static str> {
    let name = |line: &str| {
        ["dryRun", "replace", "--watch", "selfsubject", "get pod"]
            .into_iter()
            .find(|v| line.contains(v))
            .unwrap_or("?")
    };
    calls.lock().unwrap().iter().map(|(line, _)| name(line)).collect()
}

fn seat(n: u32) -> SeatName {
    SeatName::parse(&format!("podbench-{n}")).unwrap()
}

#[test]
fn a_fresh_seat_costs_four_calls_and_sends_the_whole_pod_with_its_version() {
    let (kubectl, calls) = kubectl(api);
    let (walked, ladder, _) = walk(&kubectl);
    assert_eq!(walked.unwrap(), Walked::Landed(seat(1), Rung::Degraded));
    assert_eq!(ladder.steps().last().unwrap().outcome, Outcome::Landed);
    assert_eq!(verbs(&calls), ["selfsubject", "dryRun", "--watch", "replace"]);
    let calls = calls.lock().unwrap();
    let body: Value = serde_json::from_str(calls[3].1.as_ref().unwrap()).unwrap();
    assert_eq!(body.pointer("/metadata/resourceVersion"), Some(&json!("1")));
    assert_eq!(body.pointer("/spec/future"), Some(&json!(1)));
}

#[test]
fn a_conflict_is_read_again_and_the_name_picked_anew() {
    let puts = AtomicUsize::new(0);
    let (kubectl, calls) = kubectl(move |line, stdin| {
        if line.contains("get pod") && !line.contains("--watch") {
            ok(pod("2", &["podbench-1"]))
        } else if line.contains("--watch") {
            stays(json!({"type": "ADDED", "object": pod("3", &["podbench-1", "podbench-2"])}), "")
        } else if line.contains("replace")
            && !line.contains("dryRun")
            && puts.fetch_add(1, Ordering::Relaxed) == 0
        {
            fails(CONFLICT)
        } else {
            api(line, stdin)
        }
    });
    assert_eq!(walk(&kubectl).0.unwrap(), Walked::Landed(seat(2), Rung::Degraded));
    let calls = calls.lock().unwrap();
    let last = calls.iter().rfind(|(line, _)| line.contains("replace")).unwrap();
    let body: Value = serde_json::from_str(last.1.as_ref().unwrap()).unwrap();
    assert_eq!(body.pointer("/spec/ephemeralContainers/1/name"), Some(&json!("podbench-2")));
    assert_eq!(body.pointer("/metadata/resourceVersion"), Some(&json!("2")));
}

#[test]
fn five_conflicts_are_enough() {
    let (kubectl, calls) = kubectl(|line, stdin| {
        if line.contains("dryRun") {
            fails(CONFLICT)
        } else if line.contains("get pod") {
            ok(pod("2", &[]))
        } else {
            api(line, stdin)
        }
    });
    let (walked, ..) = walk(&kubectl);
    assert!(matches!(walked.unwrap(), Walked::Ended(End::Refused(Refusal::Conflict), _)));
    assert_eq!(verbs(&calls).iter().filter(|v| **v == "dryRun").count(), 6);
}

#[test]
fn a_pod_that_was_replaced_by_its_namesake_is_not_written() {
    let (kubectl, _) = kubectl(|line, stdin| {
        if line.contains("dryRun") {
            fails(CONFLICT)
        } else if line.contains("get pod") {
            let mut other = pod("2", &[]);
            other["metadata"]["uid"] = "u-2".into();
            ok(other)
        } else {
            api(line, stdin)
        }
    });
    assert!(matches!(walk(&kubectl).0, Err(Error::Refused(Refusal::NotFound(_)))));
}

#[test]
fn who_may_not_enter_a_seat_lands_none() {
    let (kubectl, calls) = kubectl(|line, stdin| {
        if line.contains("selfsubject") {
            ok(json!({"status": {"allowed": false}}))
        } else if line.contains("/version") {
            ok(json!({"major": "1", "minor": "36"}))
        } else {
            api(line, stdin)
        }
    });
    let (walked, _, written) = walk(&kubectl);
    let Walked::Ended(End::Refused(Refusal::Rbac(right)), _) = walked.unwrap() else { panic!() };
    assert_eq!(
        (right.verb.as_str(), right.resource.as_str(), right.user.as_str()),
        ("create", "pods/exec", "me")
    );
    assert!(!verbs(&calls).contains(&"replace") && written.is_none());
}

#[test]
fn a_dry_run_says_what_attach_would_say_about_a_missing_right() {
    let ended = |allowed: Option<bool>| {
        let (kubectl, calls) = kubectl(move |line, stdin| match allowed {
            Some(allowed) if line.contains("selfsubject") => ok(json!({"status": {"allowed": allowed}})),
            None if line.contains("selfsubject") => fails("nobody knows"),
            _ if line.contains("/version") => ok(json!({"major": "1", "minor": "36"})),
            _ => api(line, stdin),
        });
        let mut ladder = Ladder::new(Facts { rehearse_only: true, ..facts() });
        let landing = Landing::new(&kubectl, Duration::from_secs(5));
        let walked = landing.walk(&mut Pod::new(pod("1", &[])).unwrap(), &mut plan(), &mut ladder);
        assert!(!verbs(&calls).contains(&"replace"));
        walked.unwrap()
    };
    assert!(matches!(ended(Some(false)), Walked::Ended(End::Refused(Refusal::Rbac(_)), _)));
    for fine in [Some(true), None] {
        assert!(matches!(ended(fine), Walked::Ended(End::WouldLand(Rung::Degraded), _)));
    }
}

#[test]
fn an_old_server_lets_in_who_may_only_get_exec() {
    let (kubectl, _) = kubectl(|line, stdin| {
        if line.contains("selfsubject") {
            ok(json!({"status": {"allowed": stdin.unwrap().contains("\"get\"")}}))
        } else if line.contains("/version") {
            ok(json!({"major": "1", "minor": "34+"}))
        } else {
            api(line, stdin)
        }
    });
    assert!(matches!(walk(&kubectl).0.unwrap(), Walked::Landed(..)));
}

#[test]
fn a_denied_watch_is_polled() {
    let (kubectl, calls) = kubectl(|line, stdin| {
        if line.contains("--watch") {
            // It prints the pod, then the denial, and goes on trying.
            stays(json!({"type": "ADDED", "object": pod("1", &[])}), WATCH_DENIED)
        } else if line.contains("get pod") {
            ok(pod("2", &["podbench-1"]))
        } else {
            api(line, stdin)
        }
    });
    assert!(matches!(walk(&kubectl).0.unwrap(), Walked::Landed(..)));
    assert_eq!(verbs(&calls).iter().filter(|v| **v == "get pod").count(), 1);
}

#[test]
fn every_refused_rung_spends_no_name() {
    let (kubectl, calls) =
        kubectl(|line, stdin| if line.contains("dryRun") { fails(POD_SECURITY) } else { api(line, stdin) });
    let (walked, ladder, _) = walk(&kubectl);
    assert_eq!(walked.unwrap(), Walked::Ended(End::Exhausted, seat(1)));
    assert_eq!(ladder.steps().len(), 3);
    assert!(ladder.steps().iter().all(|s| s.channel == Channel::Rehearsal && s.burnt.is_none()));
    assert!(!verbs(&calls).contains(&"replace"));
}

#[test]
fn a_forbidden_of_unknown_words_is_settled_by_one_review() {
    let unknown = "Error from server (Forbidden): pods \"api\" is forbidden: not today";
    let reviewed = |allowed: bool| {
        let (kubectl, calls) = kubectl(move |line, stdin| {
            if line.contains("dryRun") {
                fails(unknown)
            } else if line.contains("selfsubject") && stdin.unwrap().contains("update") {
                ok(json!({"status": {"allowed": allowed}}))
            } else {
                api(line, stdin)
            }
        });
        let (walked, ladder, _) = walk(&kubectl);
        (walked.unwrap(), ladder.steps().len(), verbs(&calls).len())
    };
    let (ended, steps, _) = reviewed(false);
    assert!(matches!(ended, Walked::Ended(End::Refused(Refusal::Rbac(_)), _)));
    assert_eq!(steps, 1);
    assert!(matches!(reviewed(true).0, Walked::Ended(End::Exhausted, _)));
}

#[test]
fn a_quota_needs_no_review() {
    let (kubectl, calls) =
        kubectl(|line, stdin| if line.contains("dryRun") { fails(QUOTA) } else { api(line, stdin) });
    assert!(matches!(walk(&kubectl).0.unwrap(), Walked::Ended(End::Exhausted, _)));
    assert_eq!(verbs(&calls), ["selfsubject", "dryRun", "dryRun", "dryRun"]);
}

#[test]
fn ctrl_c_while_waiting_says_which_seat_may_be_stored() {
    let (kubectl, _) = kubectl(|line, stdin| {
        if line.contains("--watch") { Says { interrupted: true, ..stays("", "") } } else { api(line, stdin) }
    });
    let (walked, _, written) = walk(&kubectl);
    assert_eq!(walked, Err(Error::Interrupted));
    assert_eq!(written, Some(seat(1)));
}

#[test]
fn a_kubelets_refusal_takes_the_next_name_for_the_next_rung() {
    let watches = AtomicUsize::new(0);
    let (kubectl, _) = kubectl(move |line, stdin| {
        if line.contains("--watch") {
            let both = watches.fetch_add(1, Ordering::Relaxed) > 0;
            let mut p = pod("5", if both { &["podbench-1", "podbench-2"] } else { &["podbench-1"] });
            p["status"]["ephemeralContainerStatuses"][0]["state"] =
                json!({"waiting": {"reason": "CreateContainerConfigError", "message": "runAsNonRoot"}});
            stays(json!({"type": "MODIFIED", "object": p}), "")
        } else {
            api(line, stdin)
        }
    });
    let (walked, ladder, _) = walk(&kubectl);
    assert_eq!(walked.unwrap(), Walked::Landed(seat(2), Rung::Full));
    assert_eq!(ladder.steps()[0].burnt.as_deref(), Some("podbench-1"));
    assert!(ladder.steps()[0].reason.contains("runAsNonRoot"));
}
