//! A boot: one kernel, one initramfs, in a machine that QEMU makes up instruction by instruction.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use podbench_test_support::cluster::root;
use serde_json::Value;

use crate::conditions::{Boot, Condition};
use crate::cpio::Cpio;

/// The kernels, by the start of their names.
pub(crate) const KERNELS: [&str; 2] = ["6.1", "6.12"];
/// A boot takes a few seconds and a condition a fraction of one; a machine that is busy takes a multiple.
const LIMIT: Duration = Duration::from_secs(240);

/// Where the rig's programs are; fetched where they aren't.
pub(crate) fn home() -> PathBuf {
    let said =
        Command::new(root().join("tests/kernel/packages.sh")).stderr(Stdio::inherit()).output().unwrap();
    assert!(said.status.success(), "packages.sh failed");
    PathBuf::from(String::from_utf8(said.stdout).unwrap().trim())
}

/// A program that `./dev` builds static.
fn built(variable: &str, name: &str) -> Vec<u8> {
    let path = std::env::var_os(variable).map_or_else(
        || root().join("target/agent/x86_64-unknown-linux-gnu/release").join(name),
        PathBuf::from,
    );
    std::fs::read(&path)
        .unwrap_or_else(|e| panic!("{}: {e}: `./dev test kernel` builds and runs this", path.display()))
}

fn kernel(home: &Path, version: &str) -> PathBuf {
    let start = format!("vmlinuz-{version}.");
    let mut there = std::fs::read_dir(home.join("root/boot")).unwrap().flatten().map(|e| e.path());
    there
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&start))
        .unwrap_or_else(|| panic!("no kernel {version} in {}", home.display()))
}

fn initramfs(home: &Path, boot: Boot, conditions: &[&Condition]) -> Vec<u8> {
    let mut cpio = Cpio::default();
    for folder in ["dev", "proc", "sys", "tmp"] {
        cpio.folder(folder);
    }
    cpio.device("dev/console", (5, 1));
    cpio.file("init", &built("PODBENCH_KERNEL_GUEST", "podbench-kernel-guest"));
    cpio.file("podbench", &built("PODBENCH_AGENT_BIN", "podbench-seat"));
    let (policy, name) = match boot {
        Boot::Apparmor => ("apparmor.bin", "apparmor.bin"),
        Boot::Selinux => ("selinux.bin", "selinux.bin"),
    };
    cpio.file(name, &std::fs::read(home.join(policy)).unwrap());
    if boot == Boot::Apparmor {
        cpio.file("harm", b"");
    }
    let recipes: Vec<&Value> = conditions.iter().map(|c| &c.recipe).collect();
    cpio.file("conditions.json", serde_json::to_string(&recipes).unwrap().as_bytes());
    cpio.finish()
}

/// Boots a kernel and answers what its guest said, a value a line.
pub(crate) fn run(home: &Path, version: &str, boot: Boot, conditions: &[&Condition]) -> Vec<Value> {
    let work = tempfile::tempdir().unwrap();
    let at = |name: &str| work.path().join(name);
    std::fs::write(at("initramfs"), initramfs(home, boot, conditions)).unwrap();
    let modules = match boot {
        Boot::Apparmor => "",
        Boot::Selinux => " lsm=landlock,selinux enforcing=0",
    };
    let share = |name: &str| home.join("root/usr/share").join(name);
    let start = Instant::now();
    let mut qemu = Command::new(home.join("qemu-system-x86_64"));
    // Without cx16 6.12 is steady in this QEMU (with it a third of the boots died in the slab allocator).
    qemu.args(["-accel", "tcg,thread=multi", "-M", "pc", "-cpu", "max,-cx16", "-smp", "1", "-m", "256"])
        .args(["-display", "none", "-nodefaults", "-no-reboot"])
        .arg("-L")
        .arg(share("qemu"))
        .arg("-L")
        .arg(share("seabios"))
        .arg("-serial")
        .arg(format!("file:{}", at("console").display()))
        .arg("-serial")
        .arg(format!("file:{}", at("said").display()))
        .arg("-kernel")
        .arg(kernel(home, version))
        .arg("-initrd")
        .arg(at("initramfs"))
        .arg("-append")
        .arg(format!(
            "console=ttyS0 panic=-1 quiet mitigations=off random.trust_cpu=on cryptomgr.notests \
             raid=noautodetect no_timer_check{modules}"
        ))
        .stdin(Stdio::null());
    let mut machine = qemu.spawn().unwrap();
    let late = loop {
        if machine.try_wait().unwrap().is_some() {
            break false;
        }
        if start.elapsed() > LIMIT {
            machine.kill().unwrap();
            machine.wait().unwrap();
            break true;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let text =
        |name: &str| String::from_utf8_lossy(&std::fs::read(at(name)).unwrap_or_default()).into_owned();
    let said: Vec<Value> =
        text("said").lines().filter_map(|line| serde_json::from_str(line.trim()).ok()).collect();
    let ended = said.last().is_some_and(|last| last.get("end").is_some());
    assert!(
        ended,
        "{version} {boot:?}: {}; it had said {} lines, and its console:\n{}",
        if late { "it didn't end in time" } else { "it ended before its work" },
        said.len(),
        text("console"),
    );
    let mut times: Vec<u64> = said.iter().filter_map(|line| line.pointer("/agent/ms")?.as_u64()).collect();
    times.sort_unstable();
    eprintln!(
        "{version} {boot:?}: {} conditions in {:.1} s, a capreport in {} ms (emulated)",
        conditions.len(),
        start.elapsed().as_secs_f32(),
        times.get(times.len() / 2).copied().unwrap_or_default(),
    );
    said
}
