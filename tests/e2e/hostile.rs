//! The pod is not trusted: what a hostile application or seat image can and can't do.

use std::time::{Duration, Instant};

use podbench_contract::session;
use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::{Person, alias};
use podbench_test_support::process::{eventually, run_with};
use serde_json::{Value, json};

use crate::world::{number, text, world};

#[test]
fn escape_sequences_in_process_names_reach_no_terminal() {
    let (_ns, person) = world("names", &["hostile"]);
    let said = person.podbench(&["attach", "hostile"]).expect_code(0);
    for shown in [&said.stdout, &said.stderr] {
        let bad = shown.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(bad, None, "{shown:?}");
    }
    let json = person.attach(&["hostile"]);
    let process = text(&json, "/target/process");
    assert!(!process.chars().any(char::is_control), "{process:?}");
}

/// What the application answers of its own attack on the seat.
fn attack(ns: &Namespace, pod: &str, seat: &str, query: &str) -> Value {
    ns.exec(pod, seat, &["curl", "-s", "-m", "20", &format!("http://localhost:8080/attack?{query}")]).json()
}

fn deeds(attack: &Value, victim: &str) -> Vec<String> {
    let victims = attack.pointer("/victims").and_then(Value::as_array).cloned().unwrap_or_default();
    victims
        .iter()
        .filter(|v| v.pointer("/cmdline").is_some_and(|c| c.to_string().contains(victim)))
        .flat_map(|v| v.pointer("/succeeded").and_then(Value::as_array).cloned().unwrap_or_default())
        .filter_map(|d| d.as_str().map(str::to_owned))
        .collect()
}

/// The command lines that the application saw.
fn victims(attack: &Value) -> Vec<String> {
    let victims = attack.pointer("/victims").and_then(Value::as_array).cloned().unwrap_or_default();
    let words = |v: &Value| -> Vec<String> {
        let line = v.pointer("/cmdline").and_then(Value::as_array).cloned().unwrap_or_default();
        line.iter().filter_map(|w| w.as_str().map(str::to_owned)).collect()
    };
    victims.iter().map(|v| words(v).join(" ")).collect()
}

#[test]
fn an_application_at_the_seats_ids_is_a_peer_and_the_report_says_so() {
    let (ns, person) = world("peer", &["hostile"]);
    let report = person.attach(&["hostile"]);
    assert_eq!(text(&report, "/rung/measured"), "degraded", "{report:#}");
    assert!(report.pointer("/warnings").unwrap().to_string().contains("peers"), "{report:#}");
    let seat = text(&report, "/seat/name").to_owned();
    // The agent and its sessions aren't dumpable: not even a peer reads or traces them.
    let got = attack(&ns, "hostile", &seat, "do=read,trace,connect");
    let deeds = deeds(&got, "agent");
    // It saw the agent, and at its ids it may list it: the attack was a real one.
    assert!(victims(&got).iter().any(|c| c.contains("podbench agent")), "{got:#}");
    for deed in ["read environ", "trace", "open mem", "list root"] {
        assert!(!deeds.contains(&deed.to_owned()), "the application could {deed} the agent: {got:#}");
    }
    // Whatever it did: the seat answers still, and lends no other identity.
    let who = person.ssh(&[&alias(&report), "id -u"]).text();
    assert_eq!(who, number(&report, "/rung/uid").to_string());
}

#[test]
fn an_application_cannot_touch_a_full_seat() {
    let (ns, person) = world("full-peer", &["hostile"]);
    let report = person.attach(&["hostile", "--max-rung", "full"]);
    assert_eq!(text(&report, "/rung/measured"), "full", "{report:#}");
    let seat = text(&report, "/seat/name").to_owned();
    let got = attack(&ns, "hostile", &seat, "do=read,write,trace,kill");
    let deeds = deeds(&got, "podbench");
    assert!(victims(&got).iter().any(|c| c.contains("podbench agent")), "{got:#}");
    let forbidden: Vec<_> = deeds.iter().filter(|d| *d != "list sockets").collect();
    assert!(forbidden.is_empty(), "{forbidden:?} {got:#}");
    person.ssh(&[&alias(&report), "true"]).expect_code(0);
}

/// Puts an ephemeral container into a pod as an admin would, or an attacker with the right.
fn plant(ns: &Namespace, pod: &str, container: Value) {
    let mut json = ns.get("pod", pod);
    let spec = json.pointer_mut("/spec").unwrap().as_object_mut().unwrap();
    let list = spec.entry("ephemeralContainers").or_insert_with(|| json!([]));
    list.as_array_mut().unwrap().push(container);
    let path = format!("/api/v1/namespaces/{}/pods/{pod}/ephemeralcontainers", ns.name);
    let put = ns.cluster.command(&["replace", "--raw", &path, "-f", "-"]);
    run_with(put, json.to_string().as_bytes(), Duration::from_secs(20)).expect_code(0);
    eventually("the planted container runs", Duration::from_secs(30), || {
        ns.get("pod", pod).pointer("/status/ephemeralContainerStatuses/0/state/running").cloned()
    });
}

#[test]
fn a_planted_podbench_1_of_somebody_elses_image_is_not_entered() {
    let (ns, person) = world("planted", &["hostile", "debian"]);
    let pod = ns.get("pod", "hostile");
    let image = pod.pointer("/spec/containers/0/image").unwrap();
    let debian = ns.get("pod", "debian").pointer("/spec/containers/0/image").unwrap().clone();
    assert_ne!(image, &debian);
    let owner = format!("system:serviceaccount:{}:observer", ns.name);
    plant(
        &ns,
        "hostile",
        json!({"name": "podbench-1", "image": debian, "imagePullPolicy": "IfNotPresent", "command": ["sleep", "3600"],
            "targetContainerName": pod.pointer("/spec/containers/0/name").unwrap(),
            "env": [{"name": "PODBENCH_OWNER", "value": owner}]}),
    );
    let report = person.attach(&["hostile"]);
    assert_eq!(text(&report, "/seat/name"), "podbench-2", "{report:#}");
    assert_eq!(report.pointer("/seat/reused"), Some(&false.into()));
    assert!(report.pointer("/warnings").unwrap().to_string().contains("podbench-1"), "{report:#}");
}

/// A person whose kubectl answers every exec of `measure` with these bytes instead of the seat's.
pub fn with_reply(ns: &Namespace, reply: &str) -> Person {
    let mut person = crate::world::person(ns);
    let fake = person.home().join("kubectl-hostile");
    let script =
        format!("#!/bin/sh\ncase \"$*\" in *' measure '*) {reply} ;; *) exec kubectl \"$@\" ;; esac\n");
    std::fs::write(&fake, script).unwrap();
    let mut mode = std::fs::metadata(&fake).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&fake, mode).unwrap();
    person.env.push(("PODBENCH_KUBECTL".into(), fake.display().to_string()));
    person
}

/// A shell command that prints it as a seat frames its reply.
pub fn framed(person: &Person, json: &str) -> String {
    let file = person.home().join("reply");
    std::fs::write(&file, podbench_contract::frame::encode(json.as_bytes())).unwrap();
    format!("cat {}", file.display())
}

#[test]
fn a_seat_that_answers_a_login_with_a_newline_gets_no_stanza() {
    let (ns, _) = world("login", &["hostile"]);
    let helper = crate::world::person(&ns);
    let evil = r#"{"schema":"podbench/measure/v1","version":"0.1.0","login":{"name":"x\n  ProxyCommand touch /tmp/owned"},
        "home":"/tmp","sshd":{"config":"/run/podbench/1234/sshd_config","hostKey":"ssh-ed25519 AAAA\nevil"},"target":null}"#;
    let reply = framed(&helper, evil);
    let person = with_reply(&ns, &reply);
    let report = person.attach(&["hostile"]);
    assert_eq!(report.pointer("/ssh/alias"), Some(&Value::Null), "{report:#}");
    let written = std::fs::read_dir(person.home().join(".podbench/config.d")).map_or(0, Iterator::count);
    assert_eq!(written, 0, "a stanza was written");
}

#[test]
fn a_gigabyte_for_an_answer_is_cut_off_and_said() {
    let (ns, _) = world("gigabyte", &["hostile"]);
    for reply in [
        "head -c 1000000000 /dev/zero",
        "printf 'podbench-reply/1 1000000000 00\\n'; cat /dev/zero",
        "yes",
        "exit 0",
        "echo 'pods is forbidden: User \"me\" cannot get;touch /tmp/owned; resource \"pods\" in API group \"\"' >&2; exit 1",
    ] {
        let person = with_reply(&ns, reply);
        let start = Instant::now();
        let said = person.podbench(&["attach", "hostile", "--new"]);
        assert!(start.elapsed() < Duration::from_secs(60), "{reply}: {:?}", start.elapsed());
        assert!(said.code == 2 || said.code == 124, "{reply}: {said:?}");
        let written = std::fs::read_dir(person.home().join(".podbench/config.d")).map_or(0, Iterator::count);
        assert_eq!(written, 0, "{reply}: a stanza was written");
    }
}

#[test]
fn the_seat_image_holds_no_setuid_file_and_no_host_key() {
    let (ns, person) = world("image-files", &["root"]);
    let report = person.attach(&["root"]);
    let seat = text(&report, "/seat/name");
    let find = "find / -xdev -perm /6000 -type f; ls /etc/ssh/ssh_host_* 2>/dev/null; true";
    assert_eq!(ns.exec("root", seat, &["bash", "-c", find]).text(), "");
}

#[test]
fn the_agents_socket_takes_verbs_and_nothing_from_another_container() {
    let (ns, person) = world("socket", &["hostile"]);
    let report = person.attach(&["hostile"]);
    let seat = text(&report, "/seat/name");
    let uid = report.pointer("/rung/uid").unwrap();
    let dir = ns.exec("hostile", seat, &["stat", "-c", "%a %u", &dir_of(uid)]).text();
    assert_eq!(dir, format!("700 {uid}"));
    let abstracts = ns.exec("hostile", seat, &["cat", "/proc/net/unix"]).text();
    assert!(
        !abstracts.lines().any(|l| l.contains('@')),
        "an abstract socket is open to the whole pod: {abstracts}"
    );
    // Another container at the same ids gets as far as the socket's path, by way of a process of the
    // seat that is dumpable, and no further: the agent looks at its mount namespace.
    let other = text(&person.attach(&["hostile", "--new"]), "/seat/name").to_owned();
    let mut bystander = ns.command(&["exec", "hostile", "-c", seat, "--", "sleep", "77"]);
    let mut bystander = bystander.stdout(std::process::Stdio::null()).spawn().unwrap();
    let pid = eventually("the bystander runs", Duration::from_secs(20), || {
        let pid = ns.exec("hostile", &other, &["pgrep", "-f", "sleep 77"]).stdout.trim().to_owned();
        (!pid.is_empty()).then_some(pid)
    });
    let path = format!("/proc/{pid}/root{}/agent.sock", dir_of(uid));
    for verb in ["stop", "state", "session"] {
        // It may be refused before its line is read: then writing it fails, and the answer is there all the same.
        let script = format!(
            "python import socket; s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect('{path}'); \
             exec('try:\\n s.send(b\"{verb}\\\\n\")\\nexcept OSError: pass'); print(s.recv(300))"
        );
        let said = ns.exec("hostile", &other, &["gdb", "-q", "-nx", "-batch", "-ex", &script]);
        assert!(said.stdout.contains("refused"), "{verb}: {said:?}");
    }
    let _ = bystander.kill();
    let _ = bystander.wait();
    person.ssh(&[&alias(&report), "true"]).expect_code(0);
}

fn dir_of(uid: &Value) -> String {
    let uid = u32::try_from(uid.as_u64().unwrap()).unwrap();
    session::runtime_dirs(podbench_contract::ids::Uid(uid), 0)[0].clone()
}
