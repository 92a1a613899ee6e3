//! A debugger on a live target, and the target afterwards.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::{Person, alias};
use podbench_test_support::pods::pod;
use podbench_test_support::process::{Ran, eventually, run_with};
use serde_json::{Value, json};

use crate::world::{restricted, text, world};

/// gdb by its machine interface, as an editor's adapter drives it; killed on drop.
struct Mi {
    gdb: Child,
    stdin: Option<ChildStdin>,
    said: Receiver<String>,
}

impl Mi {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut gdb = command.spawn().unwrap();
        let (send, said) = channel();
        let stdout = BufReader::new(gdb.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).all(|line| send.send(line).is_ok()));
        Self { stdin: gdb.stdin.take(), gdb, said }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line with these words.
    #[track_caller]
    fn hears(&self, words: &str) -> String {
        let end = Instant::now() + Duration::from_secs(40);
        let mut heard = Vec::new();
        while let Ok(line) = self.said.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if line.contains(words) {
                return line;
            }
            heard.push(line);
        }
        panic!("gdb never said `{words}`; it said:\n{}", heard.join("\n"));
    }

    #[track_caller]
    fn asks(&mut self, line: &str, answer: &str) -> String {
        self.send(line);
        self.hears(answer)
    }
}

impl Drop for Mi {
    fn drop(&mut self) {
        let _ = self.gdb.kill();
        let _ = self.gdb.wait();
    }
}

/// One request to the application, from the seat beside it.
fn request(ns: &Namespace, report: &Value) -> Ran {
    ns.exec(
        text(report, "/pod/name"),
        text(report, "/seat/name"),
        &["curl", "-sS", "-m", "5", "localhost:8080/"],
    )
}

#[track_caller]
fn answers(ns: &Namespace, report: &Value) {
    let said = request(ns, report);
    assert!(said.stdout.starts_with("request "), "the application doesn't answer: {said:?}");
    let pod = ns.get("pod", text(report, "/pod/name"));
    assert_eq!(pod.pointer("/status/containerStatuses/0/restartCount"), Some(&json!(0)), "it was restarted");
}

/// Until nobody traces the target.
fn let_go(ns: &Namespace, report: &Value, limit: Duration) {
    let pid = report["target"]["pid"].to_string();
    let script =
        format!("grep -q '^TracerPid:[[:space:]]*0$' /proc/{pid}/status && ! pgrep -f '[p]odbench guard'");
    eventually("the target is let go", limit, || {
        let asked = ns.exec(text(report, "/pod/name"), text(report, "/seat/name"), &["sh", "-c", &script]);
        (asked.code == 0).then_some(())
    });
}

/// gdb with a breakpoint in the target's every reply, which goes on; over ssh.
fn armed(person: &Person, report: &Value, kind: &str) -> Mi {
    let mut mi =
        Mi::start(person.ssh_command("ssh", &["-S", "none", &alias(report), "podbench dbg -- -i=mi"]));
    mi.asks(&format!("-break-insert {kind} main.reply"), "^done,bkpt=");
    mi.asks("-exec-continue", "*running");
    mi
}

#[test]
fn a_breakpoint_is_hit_in_a_distroless_pod_and_the_application_answers_afterwards() {
    let (ns, person) = restricted("dbg", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    assert!(text(&report, "/supports/liveAttach/why").starts_with("podbench dbg"), "{report:#}");
    // As podbench starts it, and as an editor would: the gdb on PATH.
    for (n, gdb) in ["podbench dbg -- -i=mi", "gdb --interpreter=mi -p 1"].into_iter().enumerate() {
        let mut mi = Mi::start(person.ssh_command("ssh", &[&alias(&report), gdb]));
        let set = mi.asks("-break-insert main.reply", "^done,bkpt=");
        assert!(set.contains("main.go"), "no symbols of the target: {set}");
        mi.asks("-exec-continue", "*running");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| request(&ns, &report));
            let stopped = mi.hears("*stopped,reason=\"breakpoint-hit\"");
            assert!(stopped.contains("func=\"main.reply\""), "{stopped}");
            let number = mi.asks("-data-evaluate-expression number", "^done,value=");
            assert_eq!(number, format!("^done,value=\"{}\"", n * 2 + 1));
            mi.send("-gdb-exit");
            assert!(waiting.join().unwrap().stdout.starts_with("request "), "the request was lost");
        });
        let_go(&ns, &report, Duration::from_secs(10));
        answers(&ns, &report);
    }
}

#[test]
fn a_gdb_that_is_killed_leaves_no_breakpoint_of_either_kind_in_the_target() {
    let (ns, person) = restricted("dbg-kill", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    for kind in ["", "-h"] {
        let mi = armed(&person, &report, kind);
        ns.exec("odd-ids", text(&report, "/seat/name"), &["pkill", "-KILL", "-x", "gdb"]).expect_code(0);
        let_go(&ns, &report, Duration::from_secs(10));
        // Without what takes them out, this request would be the target's last.
        answers(&ns, &report);
        drop(mi);
    }
}

#[test]
fn a_connection_that_is_lost_and_a_laptop_that_sleeps_let_the_target_go() {
    let (ns, person) = restricted("dbg-lost", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    let mut mi = armed(&person, &report, "");
    mi.gdb.kill().unwrap();
    let_go(&ns, &report, Duration::from_secs(30));
    answers(&ns, &report);

    // ssh stands still as on a laptop that sleeps, and the target in a breakpoint.
    let mi = armed(&person, &report, "");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            // sshd gives a client that says nothing up after seven times its 15 s, as measured.
            let seat = text(&report, "/seat/name");
            let long = ["exec", "odd-ids", "-c", seat, "--", "curl", "-sS", "-m", "170", "localhost:8080/"];
            run_with(ns.command(&long), b"", Duration::from_secs(180))
        });
        mi.hears("*stopped,reason=\"breakpoint-hit\"");
        let ssh = mi.gdb.id().to_string();
        Command::new("kill").args(["-STOP", &ssh]).status().unwrap();
        assert!(waiting.join().unwrap().stdout.starts_with("request "), "the target stands still for ever");
    });
    let_go(&ns, &report, Duration::from_secs(30));
    answers(&ns, &report);
}

#[test]
fn a_detach_in_the_middle_of_a_session_lets_the_target_go() {
    let (ns, person) = restricted("dbg-detach", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    let mi = armed(&person, &report, "");
    person.podbench(&["detach", "odd-ids"]).expect_code(0);
    let get = ["/zooapp", "get", "http://localhost:8080/"];
    assert!(ns.exec("odd-ids", "app", &get).stdout.starts_with("request "), "the application doesn't answer");
    drop(mi);
}

#[test]
fn a_core_is_taken_of_a_target_that_goes_on_and_is_opened_with_the_targets_symbols() {
    let (ns, person) = restricted("dbg-core", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    let seat = text(&report, "/seat/name");
    let said = ns.exec("odd-ids", seat, &["podbench", "dbg", "--core"]).expect_code(0);
    assert!(said.stderr.contains("a core of pid 1: up to ") && said.stderr.contains("MiB"), "{said:?}");
    let file = said.stdout.lines().last().unwrap();
    let mode =
        ns.exec("odd-ids", seat, &["sh", "-c", &format!("stat -c %a $(dirname {file}); test -s {file}")]);
    assert_eq!(mode.text(), "700", "a memory image lies open");
    answers(&ns, &report);
    let opened = ns.exec("odd-ids", seat, &["podbench", "dbg", "--core", "--", "-batch", "-ex", "bt"]);
    assert!(
        opened.stdout.contains("in runtime.") && opened.stdout.contains("Core was generated"),
        "{opened:?}"
    );
    answers(&ns, &report);
    // A folder without room: said before the target is touched.
    let small = ns.exec("odd-ids", seat, &["podbench", "dbg", "--core-dir", "/proc/1"]);
    assert!(small.code == 1 && small.stderr.contains("no core of pid 1"), "{small:?}");
}

#[test]
fn the_program_behind_a_shell_is_the_best_target_and_seats_are_told_from_it() {
    let (ns, person) = world("dbg-pids", &[]);
    let mut wrapped = pod("wrapped", 1234, 2000);
    let container = &mut wrapped["spec"]["containers"][0];
    container["image"] = "podbench.test/debian:1".into();
    container["command"] = json!(["sh", "-c", "/zooapp -port 8080 & wait"]);
    container["args"] = json!([]);
    ns.pods(&[wrapped]);
    person.attach(&["wrapped"]);
    let report = person.attach(&["wrapped", "--new"]);
    let seat = text(&report, "/seat/name");
    let all: Value = ns.exec("wrapped", seat, &["podbench", "pids", "-o", "json"]).json();
    let rows: Vec<_> = all["processes"].as_array().unwrap().iter().collect();
    assert_eq!(rows[0]["command"], "/zooapp -port 8080", "{all:#}");
    assert!(rows[0]["threads"].as_u64() > Some(1) && rows[0]["target"] == json!(true), "{all:#}");
    assert_eq!(rows[1]["name"], "sh", "{all:#}");
    let agents = rows.iter().filter(|row| row["seat"] == json!(true) && row["name"] == "podbench").count();
    assert!(agents >= 2, "both seats' agents are there: {all:#}");
    let only = ns.exec("wrapped", seat, &["podbench", "pids", "--targets"]).stdout;
    assert_eq!(only.lines().count(), 4, "a head, two processes, how they were told: {only}");
    assert_eq!(report["target"]["pid"], rows[0]["pid"]);
}

#[test]
fn where_no_debugger_can_attach_none_is_started_and_the_blocker_is_said() {
    let (ns, person) = restricted("dbg-blocked", &["odd-ids"]);
    let report = person.attach(&["odd-ids", "--max-rung", "seat", "--no-correct-ids"]);
    let seat = text(&report, "/seat/name");
    for command in [["podbench", "dbg", "1"], ["gdb", "-p", "1"]] {
        let said = ns.exec("odd-ids", seat, &command);
        assert!(said.stderr.contains("blocker  uid") && said.stderr.contains("lifted by"), "{said:?}");
        assert_eq!(said.code, ns.exec("odd-ids", seat, &["podbench", "capreport"]).code, "{said:?}");
        assert!(!said.stdout.contains("GNU gdb"), "{said:?}");
    }
    let said = ns.exec("odd-ids", seat, &["podbench", "dbg", "4000000"]).expect_code(2);
    assert!(said.stderr.contains("there is no process 4000000"), "{said:?}");
}

#[test]
fn gdb_reads_the_targets_program_where_the_seat_has_another_of_that_name_and_runs_none_of_its_scripts() {
    let (ns, person) = world("dbg-shadow", &[]);
    let mut shadowed = pod("shadowed", 1234, 2000);
    let container = &mut shadowed["spec"]["containers"][0];
    container["image"] = "podbench.test/debian:1".into();
    // A hostile image: gdb looks for such a script beside each program that it reads.
    container["command"] = json!([
        "sh",
        "-c",
        "cp /zooapp /tmp/app && echo 'print(\"the target ran in gdb\")' >/tmp/app-gdb.py && exec /tmp/app -port 8080"
    ]);
    container["args"] = json!([]);
    ns.pods(&[shadowed]);
    let report = person.attach(&["shadowed"]);
    let seat = text(&report, "/seat/name");
    ns.exec("shadowed", seat, &["cp", "/bin/true", "/tmp/app"]).expect_code(0);
    let run = |command: &str| ns.exec("shadowed", seat, &["sh", "-c", &format!("{command} 2>&1")]).stdout;
    let look = "-batch -ex 'info line main.reply' -ex 'info files'";
    for command in [format!("podbench dbg -- {look}"), format!("gdb {look} -p 1")] {
        let said = run(&command);
        assert!(said.contains("zooapp/main.go\" starts at address"), "{command}: {said}");
        assert!(!said.contains("the target ran in gdb"), "{command}: {said}");
    }
    let file = run("podbench dbg --dry-run | grep -o 'file [^'\\'']*' | cut -d' ' -f2");
    assert_eq!(run(&format!("cmp {} /proc/1/exe && echo same", file.trim())).trim(), "same", "{file}");
    answers(&ns, &report);
}

#[test]
fn a_program_of_the_seats_own_is_started_under_gdb() {
    let (ns, person) = restricted("dbg-launch", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    let script = "echo run | podbench dbg --launch /bin/sh -c 'exit 7' 2>&1";
    let said = ns.exec("odd-ids", text(&report, "/seat/name"), &["sh", "-c", script]);
    assert!(said.stdout.contains("exited with code 07"), "{said:?}");
}

/// A shell's loop has a child that ends all the time, and looks like the program.
#[test]
fn a_process_that_ends_while_it_is_looked_at_is_not_taken_for_the_target() {
    let (ns, person) = world("dbg-loop", &[]);
    let mut looping = pod("loop", 1234, 2000);
    let container = &mut looping["spec"]["containers"][0];
    container["image"] = "podbench.test/debian:1".into();
    container["command"] = json!(["sh", "-c", "while :; do sleep 0.05; done"]);
    container["args"] = json!([]);
    ns.pods(&[looping]);
    let report = person.attach(&["loop"]);
    assert_eq!(text(&report, "/rung/measured"), "degraded", "{report:#}");
    for _ in 0..20 {
        let said = ns.exec("loop", text(&report, "/seat/name"), &["podbench", "measure"]);
        let measured: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(measured.pointer("/target/uids/read/effective"), Some(&json!(1234)), "{measured:#}");
        assert_eq!(measured.pointer("/probes/seize"), Some(&json!("ok")), "{measured:#}");
    }
}
