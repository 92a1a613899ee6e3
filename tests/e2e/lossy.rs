//! `kubectl exec` is a lossy transport: a proxy between kubectl and the API server that is slow,
//! cuts, refuses, or says nothing, and what a user sees of it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::{Person, alias};
use podbench_test_support::process::{eventually, run, run_with};
use podbench_test_support::proxy::{Cut, Faults, Kind, Proxy, Refusal, Sink, Throttle, Way};

use crate::world::{PODBENCH, restricted, text};

const SPDY_ONLY: &str = "KUBECTL_REMOTE_COMMAND_WEBSOCKETS";
const GATEWAY: Refusal = Refusal::new("403 Forbidden", "the gateway says no");

/// A pod under Pod Security `restricted`, and a person whose way to it goes through a proxy.
fn behind(what: &str) -> (Namespace, Proxy, Person) {
    let (ns, _direct) = restricted(what, &["odd-ids"]);
    let proxy = Proxy::before(&ns.observer());
    let person = Person::new(PODBENCH, proxy.kubeconfig(), &ns.cluster.image);
    (ns, proxy, person)
}

fn cut(of: fn(Kind) -> bool, way: Way, after: u64, times: u64) -> Faults {
    Faults { cut: Some(Cut { of, way, after, times }), ..Faults::default() }
}

fn slow() -> Faults {
    Faults { up: Throttle::SLOW_LINK, down: Throttle::SLOW_LINK, ..Faults::default() }
}

fn stanza(report: &serde_json::Value) -> String {
    std::fs::read_to_string(text(report, "/ssh/config")).unwrap()
}

#[test]
fn a_slow_link_carries_less_than_a_megabyte_for_an_attach_and_ssh_works() {
    let (_ns, proxy, person) = behind("slow");
    proxy.set(slow());
    let report = person.attach(&["odd-ids"]);
    let bytes = proxy.traffic().bytes();
    assert!(bytes < 1_000_000, "{:?}", proxy.traffic());
    assert_eq!(person.ssh(&[&alias(&report), "echo arrived"]).text(), "arrived");
    for _ in 0..3 {
        let again = person.attach(&["odd-ids"]);
        assert_eq!(again.pointer("/measurement/schema"), report.pointer("/measurement/schema"));
        assert_eq!(text(&again, "/rung/measured"), "degraded", "{again:#}");
    }
}

#[test]
fn the_observe_role_lets_an_exec_over_a_websocket_pass_at_once() {
    let (_ns, proxy, person) = behind("role");
    person.attach(&["odd-ids"]);
    let traffic = proxy.traffic();
    assert_eq!((traffic.of(Kind::Websocket), traffic.of(Kind::Spdy)), (1, 0), "{traffic:?}");
}

#[test]
fn a_reply_that_is_cut_in_the_middle_is_asked_for_again_over_either_transport() {
    let (_ns, proxy, mut person) = behind("cut");
    person.attach(&["odd-ids"]);
    for transport in ["true", "false"] {
        person.env.push((SPDY_ONLY.into(), transport.into()));
        for after in [0, 400, 1500] {
            proxy.set(cut(Kind::is_exec, Way::Down, after, 1));
            let before = proxy.traffic().cuts;
            let report = person.attach(&["odd-ids"]);
            assert_eq!(proxy.traffic().cuts, before + 1, "{transport} {after}: nothing was cut");
            assert_eq!(text(&report, "/rung/measured"), "degraded", "{transport} {after}: {report:#}");
        }
    }
}

#[test]
fn a_reply_that_is_cut_every_time_is_a_failure_that_names_the_seat_and_the_next_command() {
    let (ns, proxy, mut person) = behind("always");
    for transport in ["true", "false"] {
        person.env.push((SPDY_ONLY.into(), transport.into()));
        proxy.set(cut(Kind::is_exec, Way::Down, 1500, u64::MAX));
        let said = person.podbench(&["attach", "odd-ids"]).expect_code(2);
        assert!(proxy.traffic().cuts >= 3, "{:?}", proxy.traffic());
        assert!(said.stderr.contains("podbench-1"), "{transport}: {}", said.stderr);
        assert!(said.stderr.contains("cut"), "{transport}: {}", said.stderr);
        assert!(said.stderr.contains("try:   podbench attach odd-ids"), "{transport}: {}", said.stderr);
        assert!(!said.stdout.contains("live attach        podbench dbg"), "half a report: {}", said.stdout);
        assert_eq!(ns.seats("odd-ids"), ["podbench-1"]);
    }
    proxy.set(Faults::default());
    assert_eq!(text(&person.attach(&["odd-ids"]), "/seat/name"), "podbench-1");
}

#[test]
fn a_gateway_that_answers_no_to_websockets_or_to_spdy_lets_an_attach_and_ssh_pass() {
    let (_ns, proxy, person) = behind("gateway");
    for status in ["403 Forbidden", "400 Bad Request", "404 Not Found"] {
        let no = Refusal::new(status, "the gateway says no");
        proxy.set(Faults { websocket: Some(no), ..Faults::default() });
        let before = proxy.traffic().of(Kind::Spdy);
        let report = person.attach(&["odd-ids"]);
        assert!(proxy.traffic().of(Kind::Spdy) > before, "{status}: websockets weren't refused");
        assert_eq!(person.ssh(&[&alias(&report), "echo arrived"]).text(), "arrived", "{status}");
        person.hang_up(&alias(&report));
    }
    proxy.set(Faults { spdy: Some(GATEWAY), ..Faults::default() });
    let report = person.attach(&["odd-ids"]);
    assert_eq!(person.ssh(&[&alias(&report), "echo arrived"]).text(), "arrived");
}

#[test]
fn where_every_websocket_is_reset_spdy_is_used_and_the_stanza_remembers_it() {
    let (_ns, proxy, person) = behind("reset");
    assert!(!stanza(&person.attach(&["odd-ids"])).contains(SPDY_ONLY));
    proxy.set(cut(|kind| kind == Kind::Websocket, Way::Up, 0, u64::MAX));
    let report = person.attach(&["odd-ids"]);
    assert!(stanza(&report).contains("KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false"), "{}", stanza(&report));
    assert_eq!(person.ssh(&[&alias(&report), "echo arrived"]).text(), "arrived");
}

#[test]
fn a_gateway_that_refuses_exec_altogether_is_quoted_and_told_apart_from_rbac() {
    let (ns, proxy, person) = behind("neither");
    proxy.set(Faults { websocket: Some(GATEWAY), spdy: Some(GATEWAY), ..Faults::default() });
    let said = person.podbench(&["attach", "odd-ids"]).expect_code(2);
    for words in ["the gateway says no", "isn't RBAC", "podbench-1", "try:   podbench attach odd-ids"] {
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
    assert!(!said.stderr.contains("create role"), "{}", said.stderr);
    proxy.set(Faults::default());
    person.attach(&["odd-ids"]);
    assert_eq!(ns.seats("odd-ids"), ["podbench-1"]);
}

/// How a session ends that says nothing for so many seconds; `interval` in place of the stanza's.
fn idles(person: &Person, alias: &str, seconds: u32, interval: Option<u32>) -> i32 {
    let keepalive = interval.map(|n| format!("ServerAliveInterval={n}"));
    let command = format!("sleep {seconds}; echo awake");
    let mut args = vec!["-S", "none"];
    args.extend(keepalive.iter().flat_map(|option| ["-o", option]));
    args.extend([alias, &command]);
    let said = run_with(person.ssh_command("ssh", &args), b"", Duration::from_secs(60));
    assert_eq!(said.code == 0, said.stdout == "awake\n", "{said:?}");
    said.code
}

#[test]
fn an_idle_session_lives_by_keepalives_and_is_cut_without_them() {
    let (_ns, proxy, mut person) = behind("idle");
    person.env.push((SPDY_ONLY.into(), "false".into()));
    let alias = alias(&person.attach(&["odd-ids"]));
    proxy.set(Faults { idle: Some(Duration::from_secs(20)), ..Faults::default() });
    assert_eq!(idles(&person, &alias, 32, None), 0);
    // kubectl pings every 5 s of its own accord: only a shorter cut shows what ssh's do.
    proxy.set(Faults { idle: Some(Duration::from_secs(4)), ..Faults::default() });
    assert_eq!(idles(&person, &alias, 9, Some(0)), 255);
    assert_eq!(idles(&person, &alias, 9, Some(1)), 0);
}

#[test]
fn a_session_whose_connection_is_killed_ends_with_255_and_leaves_nothing_in_the_seat() {
    for transport in ["true", "false"] {
        let (ns, proxy, mut person) = behind("killed");
        person.env.push((SPDY_ONLY.into(), transport.into()));
        let report = person.attach(&["odd-ids"]);
        let (alias, seat) = (alias(&report), text(&report, "/seat/name").to_owned());
        let mut ssh = person.ssh_command("ssh", &["-tt", "-S", "none", &alias, "exec sleep 4321"]);
        let mut child = ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let sleeps = || {
            let said = ns.exec("odd-ids", &seat, &["pgrep", "-f", "sleep 4321"]);
            assert!(said.code < 2, "{said:?}");
            said.code == 0
        };
        eventually("the session runs", Duration::from_secs(30), || sleeps().then_some(()));
        proxy.kill_all();
        let code = eventually("ssh ends", Duration::from_secs(30), || child.try_wait().unwrap());
        assert_eq!(code.code(), Some(255), "{transport}");
        eventually("the session is gone", Duration::from_secs(60), || (!sleeps()).then_some(()));
        person.ssh(&[&alias, "true"]).expect_code(0);
    }
}

#[test]
fn a_write_whose_answer_is_lost_is_said_and_the_next_attach_enters_that_seat() {
    let (ns, proxy, person) = behind("after-put");
    proxy.set(cut(|kind| kind == Kind::Store, Way::Down, 0, u64::MAX));
    let said = person.podbench(&["attach", "odd-ids"]).expect_code(2);
    assert!(said.stderr.contains("podbench-1") && said.stderr.contains("try: "), "{}", said.stderr);
    proxy.set(Faults::default());
    let running = eventually("the seat runs", Duration::from_secs(30), || {
        ns.get("pod", "odd-ids").pointer("/status/ephemeralContainerStatuses/0/state/running").cloned()
    });
    assert!(running.is_object());
    assert_eq!(text(&person.attach(&["odd-ids"]), "/seat/name"), "podbench-1");
    assert_eq!(ns.seats("odd-ids"), ["podbench-1"]);
}

#[test]
fn a_write_that_never_arrives_burns_no_name() {
    let (ns, proxy, person) = behind("before-put");
    proxy.set(cut(|kind| kind == Kind::Store, Way::Up, 0, u64::MAX));
    person.podbench(&["attach", "odd-ids"]).expect_code(2);
    assert!(ns.seats("odd-ids").is_empty());
    proxy.set(Faults::default());
    assert_eq!(text(&person.attach(&["odd-ids"]), "/seat/name"), "podbench-1");
}

#[test]
fn eight_megabytes_go_both_ways_over_a_slow_link_with_equal_digests() {
    let (_ns, proxy, person) = behind("transfer");
    let alias = alias(&person.attach(&["odd-ids"]));
    let link = Throttle { rate: Some(1_000_000), latency: Duration::from_millis(50) };
    proxy.set(Faults { up: link, down: link, ..Faults::default() });
    let (up, down) = (person.home().join("up"), person.home().join("down"));
    let noise: Vec<u8> = (0..8_000_000_u64)
        .map(|n| u8::try_from(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56).unwrap())
        .collect();
    std::fs::write(&up, &noise).unwrap();
    let start = Instant::now();
    run(person.ssh_command("scp", &["-q", up.to_str().unwrap(), &format!("{alias}:there")])).expect_code(0);
    run(person.ssh_command("scp", &["-q", &format!("{alias}:there"), down.to_str().unwrap()])).expect_code(0);
    assert!(start.elapsed() > Duration::from_secs(14), "the link wasn't slow: {:?}", start.elapsed());
    assert!(std::fs::read(&down).unwrap() == noise, "the bytes differ");
}

#[test]
fn an_exec_that_never_answers_ends_by_its_first_byte_deadline_and_names_the_node() {
    let (ns, proxy, person) = behind("sink");
    proxy.set(Faults { sink: Sink::Exec, ..Faults::default() });
    let start = Instant::now();
    let said = person.podbench(&["attach", "odd-ids"]).expect_code(124);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    let pod = ns.get("pod", "odd-ids");
    let node = text(&pod, "/spec/nodeName");
    for words in [node, "measure", "podbench-1", &format!("get node {node}")] {
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
}

#[test]
fn an_api_server_that_takes_connections_and_says_nothing_or_is_gone_is_a_bounded_failure() {
    let (ns, proxy, person) = behind("silent");
    for (code, faults) in [
        (124, Faults { sink: Sink::Connections, ..Faults::default() }),
        (2, Faults { dead: true, ..Faults::default() }),
    ] {
        proxy.set(faults);
        let start = Instant::now();
        let said = person.podbench(&["attach", "odd-ids"]).expect_code(code);
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        assert!(said.stderr.contains("try: "), "{}", said.stderr);
    }
    assert!(ns.seats("odd-ids").is_empty());
}

#[test]
fn a_forward_ends_soon_after_its_pod_is_deleted() {
    let (ns, _proxy, person) = behind("deleted");
    let alias = alias(&person.attach(&["odd-ids"]));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let forward = format!("{port}:localhost:8080");
    let mut ssh = person.ssh_command("ssh", &["-S", "none", "-N", "-L", &forward, &alias]);
    let mut child = ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the forward listens", Duration::from_secs(30), || {
        std::net::TcpStream::connect(("127.0.0.1", port)).ok()
    });
    ns.kubectl(&["delete", "pod", "odd-ids", "--grace-period=0", "--force"]).expect_code(0);
    let code = eventually("ssh ends", Duration::from_secs(30), || child.try_wait().unwrap());
    assert_eq!(code.code(), Some(255));
}

/// The kubelet's word on a seat.
fn has_ended(ns: &Namespace) -> bool {
    let pod = ns.get("pod", "odd-ids");
    pod.pointer("/status/ephemeralContainerStatuses/0/state/terminated").is_some()
}

#[test]
fn a_detach_whose_exec_is_cut_says_what_the_kubelet_says_and_keeps_the_way_to_what_may_run() {
    let (ns, proxy, person) = behind("end-cut");
    let report = person.attach(&["odd-ids"]);
    let stanza = std::path::PathBuf::from(text(&report, "/ssh/config"));
    // The request arrives, its answer doesn't.
    proxy.set(cut(Kind::is_exec, Way::Down, 0, u64::MAX));
    let said = person.podbench(&["detach", "odd-ids", "-o", "json"]);
    assert!(proxy.traffic().cuts > 0, "nothing was cut");
    let (told, ended) = (said.json(), has_ended(&ns));
    assert_eq!(text(&told, "/seats/0/outcome"), if ended { "ended" } else { "left" }, "{told:#}");
    assert_eq!(said.code, if ended { 0 } else { 2 }, "{}", said.stderr);
    assert_eq!(stanza.exists(), !ended);
    proxy.set(Faults::default());
    person.podbench(&["detach", "odd-ids"]).expect_code(0);
    assert!(has_ended(&ns) && !stanza.exists());
}

#[test]
fn a_detach_ends_a_seat_over_spdy_where_every_websocket_is_reset() {
    let (ns, proxy, person) = behind("end-spdy");
    person.attach(&["odd-ids"]);
    proxy.set(cut(|kind| kind == Kind::Websocket, Way::Up, 0, u64::MAX));
    person.podbench(&["detach", "odd-ids"]).expect_code(0);
    assert!(proxy.traffic().cuts > 0 && has_ended(&ns));
}
