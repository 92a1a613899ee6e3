//! The agent as it is in a pod: in a PID namespace whose PID 1 is somebody else's and reaps nothing,
//! and in a mount namespace of its own. sshd is a stand-in here; a real one is in tests/e2e.
//!
//! Needs unshare and nsenter, and root or unprivileged user namespaces; without them it fails.

#![expect(clippy::disallowed_methods, reason = "a test starts what it tests")]
#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const BIN: &str = env!("CARGO_BIN_EXE_podbench-seat");
const SOCKET: &str = "/run/podbench/0/agent.sock";

/// Makes the seat's file system and becomes the agent. `$1` the program, `$2` this test, `$3` what
/// sshd is: of a session, that is; the agent's own connection to it fails at once.
const BOOT: &str = r#"
set -e
mount -t tmpfs tmpfs /run
cp "$1" /run/podbench-seat; cp "$2" /run/inside; printf '%s' "$3" >/run/sshd.sh; 
mkdir -m 1777 /run/podbench /run/sshd
for dir in /root /dev/shm /usr/sbin /var/lib; do mount -t tmpfs tmpfs $dir; done
{ echo '#!/bin/sh'; echo 'case "$*" in *AuthorizedKeysFile*|-t*) exit 1;; esac'; cat /run/sshd.sh; } >/usr/sbin/sshd
chmod 755 /usr/sbin/sshd
exec env -i PATH=/usr/bin:/bin HOME=/root /run/podbench-seat agent
"#;

/// A pod with one seat.
struct Pod {
    app: Child,
    agent: Child,
    /// The application, as the machine counts it.
    app_pid: u32,
    /// The agent, as the machine counts it.
    pid: u32,
}

fn child_of(parent: u32) -> u32 {
    let path = format!("/proc/{parent}/task/{parent}/children");
    eventually(|| std::fs::read_to_string(&path).ok()?.split_whitespace().next()?.parse().ok())
}

fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "it never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Pod {
    fn start(sshd: &str) -> Self {
        let mut unshare = Command::new("unshare");
        if !rustix::process::getuid().is_root() {
            unshare.arg("--map-root-user");
        }
        let app = unshare
            .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"])
            .args(["sleep", "infinity"])
            .spawn()
            .unwrap();
        let app_pid = child_of(app.id());
        eventually(|| (comm(app_pid)? == "sleep").then_some(()));
        let agent = enter(app_pid)
            .args(["unshare", "--mount", "--propagation", "private", "sh", "-c", BOOT, "boot", BIN])
            .arg(std::env::current_exe().unwrap())
            .arg(sshd)
            .spawn()
            .unwrap();
        let pid = child_of(agent.id());
        let pod = Self { app, agent, app_pid, pid };
        let socket = format!("/proc/{pid}/root{SOCKET}");
        eventually(|| Path::new(&socket).exists().then_some(()));
        pod
    }

    /// A program in the seat, as `kubectl exec` would start it.
    fn exec(&self, argv: &[&str]) -> Command {
        let mut command = enter(self.pid);
        command.args(argv).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, argv: &[&str], input: &[u8]) -> Output {
        let mut child = self.exec(argv).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    fn podbench(&self, args: &[&str]) -> Output {
        self.run(&[&["/run/podbench-seat"], args].concat(), b"")
    }

    /// One of the ignored tests below, in the seat.
    fn inside(&self, name: &str) -> Command {
        self.exec(&["/run/inside", "--ignored", "--exact", name])
    }

    /// Pid, parent's pid, state and command line of every process in the pod, as the pod counts.
    fn processes(&self) -> Vec<(u32, u32, String)> {
        let out = enter(self.app_pid).args(["ps", "-eo", "pid=,ppid=,stat=,args="]).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let (pid, ppid) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                Some((pid, ppid, words.collect::<Vec<_>>().join(" ")))
            })
            .filter(|(_, _, rest)| !rest.contains("ps -eo"))
            .collect()
    }

    fn agent_in_pod(&self) -> u32 {
        self.processes().into_iter().find(|(_, _, args)| args.ends_with("podbench-seat agent")).unwrap().0
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let _ = self.app.kill();
        let _ = self.app.wait();
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

fn comm(pid: u32) -> Option<String> {
    Some(std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned())
}

fn enter(pid: u32) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["-t", &pid.to_string()]);
    if !rustix::process::getuid().is_root() {
        command.args(["--user", "--preserve-credentials"]);
    }
    command.args(["--mount", "--pid", "--"]);
    command
}

const ECHO: &str = "cat\nexit 7\n";

#[test]
fn everything_is_measured_and_the_target_is_never_stopped() {
    let pod = Pod::start(ECHO);
    let start = Instant::now();
    let out = pod.podbench(&["measure"]);
    assert!(start.elapsed() < Duration::from_secs(6));
    let m: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&m["target"]["pid"], &m["target"]["name"]), (&1.into(), &"sleep".into()), "{m:#}");
    assert_eq!(m["attribution"]["processes"], 1, "{m:#}");
    assert_eq!(m["target"]["state"]["read"], "S");
    assert_eq!(m["probes"]["nobody"]["errno"], 3, "{m:#}");
    assert_eq!(m["probes"]["child"], "ok");
    assert_eq!(m["login"]["name"], "root");
    assert_eq!(m["sshd"]["roundTrip"]["ok"], false, "the stand-in is no sshd");
    assert!(m["sshd"]["hostKey"].as_str().unwrap().starts_with("ssh-ed25519 "));
    let steps: Vec<&str> =
        m["failures"].as_array().unwrap().iter().map(|f| f["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["authorized-keys"], "{m:#}");
    let zombies = pod.processes().into_iter().filter(|(_, _, rest)| rest.starts_with('Z')).count();
    assert_eq!(zombies, 0);
    let framed = pod.podbench(&["measure", "--json"]);
    podbench_contract::frame::decode(&framed.stdout).unwrap();
}

#[test]
fn a_session_carries_bytes_and_the_exit_code_and_leaves_nothing() {
    let pod = Pod::start(ECHO);
    let sent: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let mut child = pod.exec(&["/run/podbench-seat", "session"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = sent.clone();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes));
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(out.stdout == sent, "{} of {} bytes", out.stdout.len(), sent.len());
    assert_eq!((out.status.code(), String::from_utf8_lossy(&out.stderr).as_ref()), (Some(7), ""));
    let killed = Pod::start("kill -KILL $$\n");
    assert_eq!(killed.podbench(&["session"]).status.code(), Some(137));
    assert_eq!(pod.processes().len(), 2, "{:?}", pod.processes());
}

#[test]
fn what_a_session_leaves_behind_lives_under_the_agent_and_is_reaped_there() {
    let pod = Pod::start("setsid sleep 1000 </dev/null >/dev/null 2>&1 &\n(sleep 0.2 &)\nexit 0\n");
    for _ in 0..5 {
        assert_eq!(pod.podbench(&["session"]).status.code(), Some(0));
    }
    let agent = pod.agent_in_pod();
    eventually(|| (pod.processes().len() == 7).then_some(()));
    for (pid, parent, args) in pod.processes() {
        assert!(pid == 1 || pid == agent || parent == agent, "{args}");
        assert!(!args.starts_with('Z'), "{args}");
    }
}

#[test]
fn an_sshd_whose_client_was_killed_is_ended() {
    let pod = Pod::start("trap '' TERM\nwhile :; do sleep 1; done\n");
    let mut client = pod.exec(&["/run/podbench-seat", "session"]).spawn().unwrap();
    eventually(|| {
        pod.processes().iter().any(|p| p.2.ends_with("sshd_config -o LogLevel=ERROR")).then_some(())
    });
    // nsenter's child is the session; the streams stay open here.
    let session = child_of(client.id());
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(i32::try_from(session).unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    eventually(|| (pod.processes().len() == 2).then_some(()));
    client.wait().unwrap();
}

#[test]
fn silent_and_babbling_clients_hold_up_nobody() {
    let pod = Pod::start(ECHO);
    let mut crowd = pod.inside("inside_a_crowd").spawn().unwrap();
    let mut line = [0u8; 1];
    // It says when it is there.
    let mut out = crowd.stderr.take().unwrap();
    out.read_exact(&mut line).unwrap();
    let start = Instant::now();
    let got = pod.run(&["/run/podbench-seat", "session"], b"hello");
    assert_eq!((got.stdout.as_slice(), got.status.code()), (b"hello".as_slice(), Some(7)), "{got:?}");
    assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
    assert!(crowd.wait().unwrap().success());
}

/// A hundred clients that say nothing, and some that talk nonsense, for three seconds: the agent
/// gives the silent ones up before.
#[test]
#[ignore = "runs in the seat"]
fn inside_a_crowd() {
    let silent: Vec<UnixStream> = (0..100).map(|_| UnixStream::connect(SOCKET).unwrap()).collect();
    for text in ["session /bin/sh\n", "\n", "GET / HTTP/1.1\r\n\r\n", &"x".repeat(50_000)] {
        let mut client = UnixStream::connect(SOCKET).unwrap();
        let _ = client.write_all(text.as_bytes());
        let mut answer = String::new();
        let _ = client.read_to_string(&mut answer);
        assert!(answer.is_empty() || answer == "hello\nrefused not a request\n", "{text:.20}: {answer}");
    }
    std::io::stderr().write_all(b".").unwrap();
    std::thread::sleep(Duration::from_secs(3));
    for mut client in silent {
        client.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "hello\n", "a silent client is given up");
    }
}

#[test]
fn a_caller_from_another_container_gets_no_answer_but_a_refusal() {
    let pod = Pod::start(ECHO);
    let agent = pod.agent_in_pod();
    // The application's mount namespace, the pod's PID namespace, through the seat's root.
    let socket = format!("/proc/{agent}/root{SOCKET}");
    let exe = std::env::current_exe().unwrap();
    let out = enter(pod.app_pid)
        .env("TEST_SOCKET", &socket)
        .arg(&exe)
        .args(["--ignored", "--exact", "inside_a_stranger", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains("refused the caller is in another container"), "{text} {out:?}");
    // And one that the pod's PID namespace doesn't know at all.
    let mut stranger = UnixStream::connect(format!("/proc/{}/root{SOCKET}", pod.pid)).unwrap();
    let mut answer = String::new();
    // It hangs up without having read: what was said after the refusal is a reset.
    let _ = stranger.read_to_string(&mut answer);
    assert!(answer.starts_with("refused "), "{answer}");
}

#[test]
#[ignore = "runs in the pod, outside of the seat"]
fn inside_a_stranger() {
    let socket = std::env::var("TEST_SOCKET").unwrap();
    for request in ["state\n", "stop\n", "session\n"] {
        let mut client = UnixStream::connect(&socket).unwrap();
        let _ = client.write_all(request.as_bytes());
        let mut answer = String::new();
        let _ = client.read_to_string(&mut answer);
        writeln!(std::io::stdout(), "{answer}").unwrap();
    }
}

#[test]
fn stop_ends_all_that_is_the_seats_and_leaves_the_application() {
    let pod = Pod::start("trap '' TERM HUP\nsetsid sleep 1000 &\ncat\nsleep 1000\n");
    let mut session = pod.exec(&["/run/podbench-seat", "session"]).spawn().unwrap();
    let mut direct = pod.exec(&["sleep", "1000"]).spawn().unwrap();
    let mut neighbour = enter(pod.app_pid).args(["sleep", "2000"]).spawn().unwrap();
    eventually(|| (pod.processes().len() >= 7).then_some(()));
    let out = pod.podbench(&["stop"]);
    assert_eq!((out.status.code(), out.stdout.len()), (Some(0), 0), "{out:?}");
    eventually(|| (pod.processes().len() == 2).then_some(()));
    let left: Vec<String> = pod.processes().into_iter().map(|p| p.2).collect();
    assert!(
        left.iter().all(|args| args.contains("sleep infinity") || args.contains("sleep 2000")),
        "{left:?}"
    );
    for child in [&mut session, &mut direct] {
        child.wait().unwrap();
    }
    let _ = neighbour.kill();
    let _ = neighbour.wait();
}

#[test]
fn sigterm_ends_the_seat_and_so_its_daemons() {
    let mut pod = Pod::start("setsid sleep 1000 </dev/null >/dev/null 2>&1 &\nexit 0\n");
    assert_eq!(pod.podbench(&["session"]).status.code(), Some(0));
    let term = rustix::process::Signal::TERM;
    let pid = rustix::process::Pid::from_raw(i32::try_from(pod.pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, term).unwrap();
    assert_eq!(pod.agent.wait().unwrap().code(), Some(0));
    assert_eq!(pod.processes().len(), 1, "{:?}", pod.processes());
}

#[test]
fn a_session_does_without_an_agent_that_hangs() {
    let pod = Pod::start(ECHO);
    // Not before its start-up steps are through.
    assert!(pod.podbench(&["measure", "--no-probe"]).status.success());
    let pid = rustix::process::Pid::from_raw(i32::try_from(pod.pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let out = pod.run(&["/run/podbench-seat", "session"], b"hello");
    assert_eq!((out.stdout.as_slice(), out.status.code()), (b"hello".as_slice(), Some(7)), "{out:?}");
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    // nsenter stopped with its child.
    let nsenter = rustix::process::Pid::from_raw(i32::try_from(pod.agent.id()).unwrap()).unwrap();
    rustix::process::kill_process(nsenter, rustix::process::Signal::CONT).unwrap();
    // It comes too late for the first, and nothing of it was started twice.
    assert_eq!(pod.run(&["/run/podbench-seat", "session"], b"again").stdout, b"again");
    assert_eq!(pod.processes().len(), 2, "{:?}", pod.processes());
}

#[test]
fn a_second_agent_leaves_the_first_alone() {
    let pod = Pod::start(ECHO);
    let out = pod.podbench(&["agent"]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    assert_eq!(pod.run(&["/run/podbench-seat", "session"], b"hello").stdout, b"hello");
}

#[test]
fn a_key_that_is_added_stands_there_once() {
    let pod = Pod::start(ECHO);
    let key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1p second laptop";
    for _ in 0..2 {
        assert!(pod.podbench(&["measure", "--no-probe", &format!("--authorize={key}")]).status.success());
    }
    let keys = pod.run(&["cat", "/run/podbench/0/authorized_keys"], b"").stdout;
    assert_eq!(String::from_utf8(keys).unwrap(), format!("{key}\n"));
    assert_eq!(pod.podbench(&["measure", "--authorize=nonsense"]).status.code(), Some(2));
}
