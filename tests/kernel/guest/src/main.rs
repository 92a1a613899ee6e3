//! The first process of the rig's virtual machines, and every other process in them but the agent.
//!
//! - [`condition`]: what a condition's file says of how it is made
//! - [`setup`]: does it to a process, for real
//! - [`seat`], [`target`]: the two processes of a condition
//! - [`harm`]: a probe killed at each step, and a target that counts its own stops
//!
//! It judges nothing: the host compares. Whatever it can't do is a panic, and the boot has failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::indexing_slicing)]

mod condition;
mod harm;
mod seat;
mod setup;
mod target;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};

use rustix::fs::{XattrFlags, setxattr};
use rustix::mount::{MountFlags, mount};
use serde_json::{Value, json};

use condition::{Condition, Relation};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let parse = |text: &str| serde_json::from_str::<Condition>(text).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["target", condition] => target::run(&parse(condition)),
        ["wait", rest @ ..] => target::become_ready(rest),
        ["seat", condition] => seat::run(&parse(condition), None),
        ["seat", condition, pid] => seat::run(&parse(condition), Some(pid.parse().unwrap())),
        ["attach", pid] => return ExitCode::from(seat::attach_verb(pid.parse().unwrap())),
        ["launch", condition] => seat::launch(&parse(condition)),
        ["hold", pid] => hold(pid.parse().unwrap()),
        ["traced-probe", pid] => return ExitCode::from(harm::traced_probe(pid)),
        _ if std::process::id() == 1 => init(),
        other => panic!("{other:?}"),
    }
    ExitCode::SUCCESS
}

/// A process of ours, spoken to over pipes.
pub(crate) struct Running {
    /// It.
    pub(crate) child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    /// The next line that it says.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Asks it something, and answers its next line.
    pub(crate) fn ask(&mut self) -> String {
        self.child.stdin.as_mut().unwrap().write_all(b"?").unwrap();
        self.line()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a process; a `target` has said that it is ready.
pub(crate) fn started(command: &mut Command) -> Running {
    let target = command.get_args().next().is_some_and(|word| word == "target" || word == "hold");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let mut running = Running { child, stdout };
    if target {
        assert_eq!(running.line(), "ready", "{command:?}");
    }
    running
}

/// The verb: traces a process until its stdin closes.
fn hold(pid: i32) {
    nix::sys::ptrace::seize(nix::unistd::Pid::from_raw(pid), nix::sys::ptrace::Options::empty()).unwrap();
    println!("ready");
    let _ = std::io::stdin().lock().read_line(&mut String::new());
}

/// What the first process does: mounts, loads the policies that it was given, makes every condition.
fn init() {
    for (kind, at) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
        ("securityfs", "/sys/kernel/security"),
    ] {
        mount(kind, at, kind, MountFlags::empty(), None).unwrap();
    }
    // A line a thing; what goes wrong in here ends as a panic on the console.
    let mut out = fs::OpenOptions::new().write(true).open("/dev/ttyS1").unwrap();
    let mut say = |value: &Value| writeln!(out, "{value}").unwrap();
    load("/apparmor.bin", "/sys/kernel/security/apparmor/.load");
    if Path::new("/selinux.bin").exists() {
        mount("selinuxfs", "/sys/fs/selinux", "selinuxfs", MountFlags::empty(), None).unwrap();
        load("/selinux.bin", "/sys/fs/selinux/load");
        fs::write("/sys/fs/selinux/enforce", "1").unwrap();
    }
    fs::copy("/init", target::CAPPED).unwrap();
    // VFS_CAP_REVISION_2 with the effective bit; permitted is cap_net_bind_service (10).
    let capped: Vec<u8> = [0x0200_0001u32, 1 << 10, 0, 0, 0].iter().flat_map(|w| w.to_le_bytes()).collect();
    setxattr(target::CAPPED, "security.capability", &capped, XattrFlags::empty()).unwrap();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let modules = fs::read_to_string("/sys/kernel/security/lsm").unwrap();
    say(&json!({ "boot": { "kernel": kernel.trim(), "lsm": modules } }));
    let conditions: Vec<Condition> =
        serde_json::from_str(&fs::read_to_string("/conditions.json").unwrap()).unwrap();
    let harm = Path::new("/harm").exists();
    if harm {
        say(&harm::run());
    }
    for condition in conditions {
        yama(condition.yama);
        say(&make(&condition));
    }
    say(&json!({ "end": true }));
    rustix::system::reboot(rustix::system::RebootCommand::Restart).unwrap();
}

fn load(policy: &str, into: &str) {
    if let Ok(bytes) = fs::read(policy) {
        fs::write(into, bytes).unwrap();
    }
}

/// Where there is no Yama, a condition has none.
fn yama(scope: u32) {
    const FILE: &str = "/proc/sys/kernel/yama/ptrace_scope";
    match fs::read_to_string(FILE) {
        Ok(now) if now.trim() != scope.to_string() => fs::write(FILE, scope.to_string()).unwrap(),
        Ok(_) => {}
        Err(_) => assert_eq!(scope, 0, "this kernel was booted without Yama"),
    }
}

fn make(condition: &Condition) -> Value {
    let text = serde_json::to_string(condition).unwrap();
    let beside = matches!(condition.relation, Relation::Beside | Relation::Traced | Relation::Ended);
    let target = beside.then(|| started(Command::new("/init").args(["target", &text])));
    let mut pid = target.as_ref().map(|t| t.child.id());
    if condition.relation == Relation::KernelThread {
        pid = Some(2);
    }
    let _tracer = (condition.relation == Relation::Traced)
        .then(|| started(Command::new("/init").args(["hold", &pid.unwrap().to_string()])));
    if condition.relation == Relation::Ended {
        while !fs::read_to_string(format!("/proc/{}/status", pid.unwrap())).unwrap().contains("State:\tZ") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
    let mut words = vec!["seat".to_owned(), text];
    words.extend(pid.map(|pid| pid.to_string()));
    let said = Command::new("/init").args(&words).stdin(Stdio::null()).output().unwrap();
    serde_json::from_slice(&said.stdout).unwrap_or_else(|e| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        json!({ "condition": condition.name, "failed": format!("{e}: {} {}", text(&said.stdout), text(&said.stderr)) })
    })
}
