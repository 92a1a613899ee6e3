//! A debugger that stops the target, and the kubelet's probes of it.

use std::time::{Duration, Instant};

use podbench_test_support::namespace::Namespace;
use podbench_test_support::pods::pod;
use podbench_test_support::process::eventually;
use serde_json::{Value, json};

use crate::world::{number, person, text};

/// A pod whose container has these probes.
fn probed(name: &str, probes: &Value) -> Value {
    let mut pod = pod(name, 1234, 2000);
    pod["spec"]["terminationGracePeriodSeconds"] = 1.into();
    let container = pod["spec"]["containers"][0].as_object_mut().unwrap();
    container.extend(probes.as_object().unwrap().clone());
    pod
}

#[test]
fn a_target_that_stands_still_is_restarted_when_the_report_says_and_the_kernel_answers_tcp_for_it() {
    let ns = Namespace::scratch("probes");
    let every = |how: Value| {
        let mut probe = json!({"periodSeconds": 3, "failureThreshold": 3, "timeoutSeconds": 2});
        probe.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
        json!({"livenessProbe": probe})
    };
    ns.pods(&[
        probed("http", &every(json!({"httpGet": {"path": "/pid", "port": 8080}}))),
        probed("tcp", &every(json!({"tcpSocket": {"port": 8080}}))),
    ]);
    let person = person(&ns);
    let stop = |pod: &str| {
        let report = person.attach(&[pod]);
        let seat = text(&report, "/seat/name").to_owned();
        let pid = number(&report, "/target/pid");
        // A debugger's stop: the kernel lets no process stop the init of its own PID namespace by a signal.
        let gdb = format!("setsid gdb -batch -p {pid} -ex 'shell sleep 120' >/dev/null 2>&1 </dev/null &");
        ns.exec(pod, &seat, &["sh", "-c", &gdb]).expect_code(0);
        let state = format!("grep -q '^State:.t (tracing stop)' /proc/{pid}/status");
        eventually("the target stands still", Duration::from_secs(20), || {
            (ns.exec(pod, &seat, &["sh", "-c", &state]).code == 0).then_some(())
        });
        (report["warnings"].to_string(), Instant::now())
    };
    let (said, _) = stop("tcp");
    assert!(!said.contains("breakpoint"), "{said}");
    let (said, began) = stop("http");
    let told =
        "a breakpoint that holds app for 8 s fails its liveness probe (GET /pid every 3 s, 3 failures)";
    assert!(said.contains(told) && said.contains("the kubelet restarts it"), "{said}");
    let restarts = |pod: &str| ns.get("pod", pod)["status"]["containerStatuses"][0]["restartCount"].clone();
    eventually("the kubelet has restarted it", Duration::from_secs(60), || {
        (restarts("http") == 1).then_some(())
    });
    // Not before: a probe that was under way when it stopped is the least of the time.
    assert!(began.elapsed() >= Duration::from_secs(7), "{:?}", began.elapsed());
    assert_eq!(restarts("tcp"), 0, "it has stood still for longer");
}
