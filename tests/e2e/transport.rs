//! ssh over `kubectl exec`: bytes, forwards, reuse, and what breaks without a flag.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use podbench_contract::session;
use podbench_test_support::person::{Person, alias};
use podbench_test_support::process::{eventually, run, run_with};

use crate::world::{restricted, text, world};

/// 100 MB that nothing can compress or guess.
fn noise(file: &Path) {
    let mut urandom = std::fs::File::open("/dev/urandom").unwrap().take(100_000_000);
    std::io::copy(&mut urandom, &mut std::fs::File::create(file).unwrap()).unwrap();
}

fn digest(person: &Person, file: &Path) -> String {
    let mut command = person.command("sha256sum");
    command.arg(file);
    run(command).text().split(' ').next().unwrap().to_owned()
}

fn remote_digest(person: &Person, alias: &str, file: &str) -> String {
    person.ssh(&[alias, &format!("sha256sum {file}")]).text().split(' ').next().unwrap().to_owned()
}

#[test]
fn a_hundred_megabytes_go_both_ways_by_scp_and_by_sftp_with_equal_digests() {
    let (_ns, person) = restricted("bytes", &["odd-ids"]);
    let alias = alias(&person.attach(&["odd-ids"]));
    let up = person.home().join("up");
    noise(&up);
    let sum = digest(&person, &up);
    run(person.ssh_command("scp", &["-q", up.to_str().unwrap(), &format!("{alias}:one")])).expect_code(0);
    assert_eq!(remote_digest(&person, &alias, "one"), sum);
    let batch = format!("get one {0}/down\nput {0}/down two\n", person.home().display());
    run_with(
        person.ssh_command("sftp", &["-q", "-b", "-", &alias]),
        batch.as_bytes(),
        Duration::from_secs(60),
    )
    .expect_code(0);
    assert_eq!(digest(&person, &person.home().join("down")), sum);
    assert_eq!(remote_digest(&person, &alias, "two"), sum);
    person.hang_up(&alias);
    run(person
        .ssh_command("scp", &["-q", &format!("{alias}:two"), &format!("{}/back", person.home().display())]))
    .expect_code(0);
    assert_eq!(digest(&person, &person.home().join("back")), sum);
    // A start-up file that prints something breaks the transfers of an sftp that a shell starts.
    person.ssh(&[&alias, "echo 'echo NOISE' >>.bashrc"]).expect_code(0);
    run(person
        .ssh_command("scp", &["-q", &format!("{alias}:one"), &format!("{}/noisy", person.home().display())]))
    .expect_code(0);
    assert_eq!(digest(&person, &person.home().join("noisy")), sum);
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn forward(person: &Person, alias: &str, how: &[&str]) -> Running {
    let mut args = how.to_vec();
    args.extend([
        "-N",
        "-o",
        "ControlMaster=no",
        "-o",
        "ControlPath=none",
        "-o",
        "ExitOnForwardFailure=yes",
        alias,
    ]);
    let mut command = person.ssh_command("ssh", &args);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Running(command.spawn().unwrap())
}

fn connect(port: u16) -> TcpStream {
    eventually("the forward listens", Duration::from_secs(20), || {
        TcpStream::connect(("127.0.0.1", port)).ok()
    })
}

#[test]
fn a_local_forward_reaches_the_applications_port() {
    let (_ns, person) = restricted("forward", &["odd-ids"]);
    let alias = alias(&person.attach(&["odd-ids"]));
    let port = free_port();
    let _ssh = forward(&person, &alias, &["-L", &format!("{port}:localhost:8080")]);
    let mut stream = connect(port);
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.contains("request "), "{reply}");
}

#[test]
fn a_dynamic_forward_is_a_socks_proxy_in_the_pod() {
    let (_ns, person) = restricted("socks", &["odd-ids"]);
    let alias = alias(&person.attach(&["odd-ids"]));
    let port = free_port();
    let _ssh = forward(&person, &alias, &["-D", &port.to_string()]);
    let mut stream = connect(port);
    // RFC 1928: no authentication; connect to "localhost":8080 by name, so that the pod resolves it.
    stream.write_all(&[5, 1, 0]).unwrap();
    let mut two = [0; 2];
    stream.read_exact(&mut two).unwrap();
    assert_eq!(two, [5, 0]);
    let mut ask = vec![5, 1, 0, 3, 9];
    ask.extend(b"localhost");
    ask.extend(8080u16.to_be_bytes());
    stream.write_all(&ask).unwrap();
    let mut ten = [0; 10];
    stream.read_exact(&mut ten).unwrap();
    assert_eq!(ten[1], 0, "the pod refused the connection");
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.contains("request "), "{reply}");
}

#[test]
fn a_remote_forward_is_refused_because_it_would_listen_in_the_pod() {
    let (_ns, person) = restricted("remote-forward", &["odd-ids"]);
    let alias = alias(&person.attach(&["odd-ids"]));
    let said = person.ssh(&[
        "-o",
        "ControlPath=none",
        "-o",
        "ExitOnForwardFailure=yes",
        "-R",
        "0:localhost:1",
        &alias,
        "true",
    ]);
    assert_ne!(said.code, 0, "{said:?}");
}

#[test]
fn a_second_connection_rides_the_first_and_starts_no_kubectl() {
    let (_ns, person) = restricted("mux", &["odd-ids"]);
    let alias = alias(&person.attach(&["odd-ids"]));
    person.ssh(&[&alias, "true"]).expect_code(0);
    run(person.ssh_command("ssh", &["-O", "check", &alias])).expect_code(0);
    // The mux client needs no ProxyCommand: it works where PATH holds no kubectl at all.
    let mut second = person.ssh_command("/usr/bin/ssh", &[&alias, "echo second"]);
    second.env("PATH", "/nonexistent");
    assert_eq!(run(second).text(), "second");
}

#[test]
fn a_hundred_connects_one_after_the_other_all_succeed() {
    let (_ns, person) = restricted("connects", &["odd-ids"]);
    let alias = alias(&person.attach(&["odd-ids"]));
    for n in 0..100 {
        let said =
            person.ssh(&["-o", "ControlMaster=no", "-o", "ControlPath=none", &alias, &format!("echo {n}")]);
        assert_eq!((said.code, said.stdout.trim()), (0, n.to_string().as_str()), "connect {n}: {said:?}");
        assert_eq!(said.stderr, "", "a healthy connection says nothing");
    }
}

#[test]
fn ssh_works_from_an_empty_environment() {
    let (_ns, person) = restricted("env-i", &["odd-ids"]);
    let alias = alias(&person.attach(&["odd-ids"]));
    let mut command = person.ssh_command("ssh", &[&alias, "true"]);
    command.env_clear();
    run(command).expect_code(0);
}

#[test]
fn an_exit_code_a_signal_and_a_large_stderr_are_carried() {
    let (_ns, person) = restricted("exit", &["odd-ids"]);
    let alias = alias(&person.attach(&["odd-ids"]));
    assert_eq!(person.ssh(&[&alias, "exit 7"]).code, 7);
    assert_eq!(person.ssh(&[&alias, "kill -9 $$"]).code, 255, "ssh's code for a remote signal");
    let said = person.ssh(&[&alias, "head -c 3000000 /dev/zero | tr '\\0' x >&2"]).expect_code(0);
    assert_eq!(said.stderr.len(), 3_000_000);
    let tty = person.ssh(&["-tt", &alias, "tty; stty size"]);
    assert!(tty.stdout.contains("/dev/pts/"), "{tty:?}");
}

/// sshd's own argv, without podbench's session in between, and with or without `-e`.
fn direct(
    person: &Person,
    report: &serde_json::Value,
    keep_stderr: bool,
) -> podbench_test_support::process::Ran {
    let config = text(report, "/measurement/sshd/config");
    let argv: Vec<String> =
        session::sshd_argv(config).into_iter().filter(|w| keep_stderr || w != "-e").collect();
    let proxy = format!("kubectl exec -i odd-ids -c {} -- {}", text(report, "/seat/name"), argv.join(" "));
    person.ssh(&[
        "-o",
        &format!("ProxyCommand={proxy}"),
        "-o",
        "ControlPath=none",
        &alias(report),
        "echo arrived",
    ])
}

#[test]
fn without_its_e_flag_the_direct_argv_breaks_and_with_it_it_works() {
    let (_ns, person) = restricted("minus-e", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    assert_eq!(direct(&person, &report, true).text(), "arrived");
    let broken = direct(&person, &report, false);
    assert!(broken.code != 0 || !broken.stdout.contains("arrived"), "-e isn't needed any more? {broken:?}");
}

#[test]
fn a_direct_exec_that_closes_fd_2_loses_its_tail_and_a_session_does_not() {
    let (_ns, person) = restricted("fd2", &["odd-ids"]);
    let report = person.attach(&["odd-ids"]);
    // Two lines go in, three seconds apart, to a program that has closed its stderr (spikes/s1-exec-fd2).
    let remote = "exec 2>/dev/null; exec cat";
    let echoed = |through: &str| {
        let mut command = person.command("bash");
        command.args(["-c", &format!("(echo one; sleep 3; echo two) | {through}")]);
        run(command).stdout
    };
    let seat = text(&report, "/seat/name");
    let exec = echoed(&format!("kubectl exec -i odd-ids -c {seat} -- bash -c '{remote}'"));
    assert_eq!(exec, "one\n", "the runtime no longer ends an exec whose stderr is closed");
    let config = person.ssh_config();
    let session = echoed(&format!("ssh -F {} {} '{remote}'", config.display(), alias(&report)));
    assert_eq!(session, "one\ntwo\n");
}

#[test]
fn every_kind_of_pod_of_the_zoo_lets_ssh_in() {
    let names =
        ["static", "odd-ids", "root", "readonly", "mesh", "shared-pid", "userns", "debian", "filecap"];
    let (_ns, person) = world("zoo", &names);
    for name in names {
        let report = person.attach(&[name]);
        let said = person.ssh(&[&alias(&report), "echo in; id -u"]);
        let uid = report.pointer("/rung/uid").unwrap();
        assert_eq!(said.clone().text(), format!("in\n{uid}"), "{name}: {said:?} {report:#}");
        let pid = report.pointer("/target/pid").and_then(serde_json::Value::as_u64);
        assert!(pid.is_some(), "{name}: no process of the target was found: {report:#}");
    }
}
