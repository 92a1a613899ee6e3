use podbench_contract::ids::{Gid, Uid};
use podbench_contract::measurement::{By, Ids, Process};
use podbench_contract::oracle;
use podbench_contract::rung::Rung;

use super::*;
use crate::report::attach::{Calls, Pod, SCHEMA, Seat, Ssh, blockers, of_pod};
use crate::report::supports::supports;
use crate::report::warnings::{Known, warnings};

const EXEC: &str = "kubectl exec -it -n demo api-7d9f -c podbench-1 -- sh";
const PLAIN: Style = Style { width: 80, color: false };

fn ids<T: Copy>(id: T) -> Reading<Ids<T>> {
    Reading::Read(Ids { real: id, effective: id, saved: id, fs: id })
}

fn process(pid: u32, name: &str, uid: u32, caps: u64) -> Process {
    Process {
        pid,
        name: name.into(),
        uids: ids(Uid(uid)),
        gids: ids(Gid(uid)),
        cap_eff: Reading::Read(Caps(caps)),
        cap_prm: Reading::Read(Caps(caps)),
        ..Process::default()
    }
}

/// A degraded seat where everything works.
pub(crate) fn measured() -> Measurement {
    let mut m = Measurement { version: "0.1.0".into(), ..Measurement::default() };
    m.seat = process(40, "podbench", 1234, 0);
    m.target = Some(process(1, "server", 1234, 0));
    m.attribution.by = By::ContainerId;
    m.node.yama = Reading::Denied(Errno::ENOENT);
    m.node.kernel = Reading::Read("6.1.0-44-amd64".into());
    m.probes.seize = Attempt::Ok;
    m.probes.nobody = Attempt::Errno(Errno::ESRCH);
    m.probes.child = Attempt::Ok;
    m.probes.reads.root = Attempt::Ok;
    m.probes.reads.maps = Attempt::Ok;
    m.probes.reads.environ = Attempt::Ok;
    m.memory.used = Reading::Read(61 * MIB);
    m.memory.limit = Reading::Read(256 * MIB);
    m.memory.target_used = Reading::Read(40 * MIB);
    m.memory.target_limit = Reading::Read(256 * MIB);
    m.memory.scope = "container".into();
    m.debuggers = vec!["gdb".into(), "strace".into()];
    m.sshd.round_trip.ok = true;
    m.sshd.round_trip.stage = "kex".into();
    m
}

pub(crate) fn step(rung: Rung, outcome: Outcome, channel: Channel, reason: &str) -> Step {
    Step { rung, outcome, channel, reason: reason.into(), burnt: None }
}

/// The report that attach would make of it.
pub(crate) fn report(m: Option<Measurement>, ladder: Vec<Step>, ssh: Ssh) -> Attach {
    let name = ladder.last().map_or(Rung::Degraded, |s| s.rung);
    let blockers = m.as_ref().map(|m| blockers(m, "api-7d9f", "demo")).unwrap_or_default();
    Attach {
        schema: SCHEMA.into(),
        context: "kind-a".into(),
        namespace: "demo".into(),
        pod: Pod { name: "api-7d9f".into(), uid: "u".into(), node: "worker-2".into(), why: None },
        target: Target {
            container: "api".into(),
            uid: Some(Uid(1234)),
            gid: Some(Gid(1234)),
            pid: m.as_ref().and_then(|m| m.target.as_ref()).map(|t| t.pid),
            process: m.as_ref().and_then(|m| m.target.as_ref()).map(|t| t.name.clone()),
            why: None,
            others: Vec::new(),
        },
        seat: Seat {
            name: "podbench-1".into(),
            reused: false,
            image: "registry.local/podbench:0.1.0".into(),
            version: m.as_ref().map(|m| m.version.clone()),
            home: None,
            owner: None,
            reason: None,
        },
        rung: RungFacts {
            name,
            measured: m.as_ref().and_then(oracle::measured_rung),
            uid: m.as_ref().and_then(|m| m.seat.uid()),
            gid: m.as_ref().and_then(|m| m.seat.gid()),
            cap_eff: m.as_ref().and_then(|m| m.seat.cap_eff.value().copied()),
        },
        supports: supports(m.as_ref().ok_or("the seat didn't answer within 10 s"), &ssh, EXEC),
        blocker: blockers.first().cloned(),
        blockers,
        warnings: warnings(m.as_ref(), &Known { rung: name, host_network: false, version: "0.1.0" }),
        measurement: m,
        ssh,
        ladder,
        resized: None,
        calls: Calls { kubectl: 8, wall_ms: 640 },
    }
}

pub(crate) fn alias(include: Option<&str>) -> Ssh {
    Ssh {
        alias: Some("podbench-demo-api-7d9f-1".into()),
        config: Some("/home/me/.podbench/config.d/podbench-demo-api-7d9f-1.conf".into()),
        login: Some("podbench".into()),
        include: include.map(str::to_owned),
        why: None,
        instead: None,
        checked: None,
    }
}

/// Every report goes the way of `-o json | podbench`: nothing but the value may be needed.
fn rendered(report: &Attach, style: Style) -> String {
    let value = serde_json::to_value(report).unwrap();
    attach(&serde_json::from_value(value).unwrap(), style)
}

/// Compares with the file beside this one; `PODBENCH_BLESS=1` writes it, to be read in the diff.
#[expect(clippy::disallowed_methods, reason = "a test's own switch")]
fn expect(name: &str, text: &str) {
    let file = format!("{}/src/report/text/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("PODBENCH_BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(file).unwrap());
}

fn landed(rung: Rung) -> Vec<Step> {
    vec![step(rung, Outcome::Landed, Channel::Kubelet, "")]
}

#[test]
fn a_degraded_seat_after_a_refused_one() {
    let refused = "Pod Security restricted:latest forbids it: unrestricted capabilities (container \"podbench-1\" \
                   must not include \"SYS_PTRACE\" in securityContext.capabilities.add)";
    let ladder = vec![
        step(Rung::Full, Outcome::Refused, Channel::Rehearsal, refused),
        step(Rung::Degraded, Outcome::Landed, Channel::Kubelet, ""),
    ];
    let mut report = report(Some(measured()), ladder, alias(None));
    report.pod.why = Some("the only match for `api`".into());
    report.target.others = vec!["envoy".into()];
    expect("degraded", &rendered(&report, PLAIN));
}

#[test]
fn a_full_seat_that_ssh_does_not_find_yet() {
    let mut m = measured();
    m.seat = process(40, "podbench", 0, 1 << 19);
    m.node.yama = Reading::Read(1);
    m.memory.limit = Reading::Read(u64::MAX);
    let line = "Include ~/.podbench/config.d/*.conf";
    let mut report = report(Some(m), landed(Rung::Full), alias(Some(line)));
    report.seat.reused = true;
    expect("full", &rendered(&report, PLAIN));
}

#[test]
fn a_seat_that_cannot_see_the_target_and_has_no_login() {
    let mut m = measured();
    m.seat = process(40, "podbench", 65532, 0);
    m.node.yama = Reading::Read(1);
    let no = Attempt::Errno(Errno::EPERM);
    let reads = Attempt::Errno(Errno::EACCES);
    m.probes.seize = no;
    m.probes.child = Attempt::Ok;
    (m.probes.reads.root, m.probes.reads.maps, m.probes.reads.environ) = (reads, reads, reads);
    m.version = "0.0.9".into();
    m.failures = vec![podbench_contract::measurement::Failure {
        step: "nss-identity".into(),
        why: "/var/lib/extrausers/passwd: read-only file system".into(),
    }];
    let ladder = vec![
        step(Rung::Full, Outcome::Withdrawn, Channel::Rehearsal, "it would be stored without SYS_PTRACE"),
        Step {
            burnt: Some("podbench-1".into()),
            ..step(Rung::Degraded, Outcome::Refused, Channel::Kubelet, "ImagePullBackOff: not found")
        },
        step(Rung::Seat, Outcome::Landed, Channel::Kubelet, ""),
    ];
    let ssh = Ssh::none("the seat has no login for uid 65532", Some(EXEC.to_owned()));
    expect("seat", &rendered(&report(Some(m), ladder, ssh), PLAIN));
}

#[test]
fn what_was_not_measured_says_so() {
    let ssh = Ssh::none("the seat didn't answer", Some(EXEC.to_owned()));
    expect("not-measured", &rendered(&report(None, landed(Rung::Degraded), ssh), PLAIN));
}

#[test]
fn a_rehearsal_lands_nothing() {
    let ladder = vec![step(Rung::Degraded, Outcome::WouldLand, Channel::Rehearsal, "")];
    let ssh = Ssh::none("--dry-run: nothing was written", None);
    expect("rehearsal", &rendered(&report(None, ladder, ssh), PLAIN));
}

#[test]
fn no_line_is_too_wide_and_no_hostile_text_reaches_the_terminal() {
    let evil = format!("\u{1b}]0;x\u{7}\u{202e}{}\r\n{}", "w".repeat(300), "word ".repeat(200));
    let mut m = measured();
    m.probes.seize = Attempt::Errno(Errno::EACCES);
    m.seat.label = Reading::Read(evil.clone());
    m.node.kernel = Reading::Read(evil.clone());
    let mut report = report(
        Some(m),
        vec![step(Rung::Full, Outcome::Refused, Channel::Admission, &evil)],
        alias(Some(&evil)),
    );
    report.namespace = "n".repeat(63);
    report.pod.name = "p".repeat(253);
    report.pod.node = evil.clone();
    report.pod.why = Some(evil.clone());
    report.context = evil.clone();
    report.target.container = evil.clone();
    report.target.process = Some(evil.clone());
    report.target.others = vec![evil.clone(); 3];
    report.seat.image = evil.clone();
    report.seat.version = Some(evil.clone());
    report.warnings = vec![evil.clone(); 2];
    report.supports.live_attach.why = evil.clone();
    report.blockers = vec![oracle::Blocker {
        kind: oracle::Kind::Lsm,
        detail: evil.clone(),
        remedy: evil,
        who: Vec::new(),
        certain: true,
    }];
    for width in [40, 60, 80] {
        let text = rendered(&report, Style { width, color: false });
        for line in text.lines() {
            // A command is never wrapped, nor is the line that belongs into ~/.ssh/config.
            let command = line.contains("ssh -F ")
                || line.starts_with("        \\u{1b}]0;x")
                || line.contains("kubectl exec ")
                || line.contains("podbench dbg ");
            assert!(command || console::measure_text_width(line) <= width, "{width}: {line}");
            assert!(!line.chars().any(char::is_control) && !line.contains('\u{202e}'), "{line:?}");
        }
    }
}

#[test]
fn colour_changes_no_word() {
    let report = report(Some(measured()), landed(Rung::Degraded), alias(None));
    let colored = rendered(&report, Style { width: 80, color: true });
    assert!(colored.contains("\u{1b}[32myes\u{1b}[0m"));
    assert_eq!(console::strip_ansi_codes(&colored), rendered(&report, PLAIN));
}

#[test]
fn a_command_is_whole_however_long() {
    let mut report = report(Some(measured()), landed(Rung::Degraded), alias(None));
    report.supports.exec.why =
        format!("kubectl exec -it -n {} {} -c podbench-1 -- sh", "n".repeat(63), "p".repeat(100));
    let text = rendered(&report, PLAIN);
    assert!(text.contains(&report.supports.exec.why), "{text}");
}

#[test]
fn a_wait_is_told_in_the_unit_that_fits() {
    assert_eq!([640, 12_345, 125_000].map(duration), ["0.6 s", "12 s", "2 min 5 s"]);
}

#[test]
fn a_rungs_end_is_told_in_the_same_words_wherever_it_is() {
    let ended = |outcome, channel, burnt: Option<&str>| {
        let why = "why";
        super::outcome(&Step { burnt: burnt.map(str::to_owned), ..step(Rung::Full, outcome, channel, why) })
    };
    assert_eq!(ended(Outcome::Landed, Channel::Kubelet, None), "landed: why");
    assert_eq!(ended(Outcome::Reused, Channel::Launcher, None), "reused: why");
    assert_eq!(ended(Outcome::Skipped, Channel::Launcher, None), "skipped: why");
    assert_eq!(ended(Outcome::Withdrawn, Channel::Rehearsal, None), "withdrawn: why");
    assert_eq!(ended(Outcome::Refused, Channel::Admission, None), "refused at the write: why");
    assert_eq!(
        ended(Outcome::Refused, Channel::Kubelet, Some("podbench-1")),
        "refused by the node: why; the name podbench-1 is burnt: a pod keeps it for its life"
    );
}

#[test]
fn a_remedy_names_the_pod_and_changes_no_other_word() {
    let blocker = |remedy: &str| oracle::Blocker {
        kind: oracle::Kind::Lsm,
        detail: "POD".into(),
        remedy: remedy.into(),
        who: vec![oracle::Who::User],
        certain: true,
    };
    for (remedy, named) in [
        ("podbench attach POD --new --target-uid 7", "podbench attach api --new --target-uid 7"),
        ("a PODMAN or a POD-like word stays", "a PODMAN or a POD-like word stays"),
        ("", ""),
    ] {
        assert_eq!(of_pod(blocker(remedy), "api", ""), blocker(named));
    }
}

#[test]
fn what_may_stand_behind_the_first_blocker_is_told_as_perhaps() {
    let mut m = measured();
    (m.seat.uids, m.seat.gids) = (ids(Uid(0)), ids(Gid(0)));
    let denied = || Attempt::Errno(Errno::EACCES);
    m.probes.reads.root = denied();
    m.probes.reads.maps = denied();
    m.probes.reads.environ = denied();
    m.seat.label = Reading::Read("cri-containerd.apparmor.d (enforce)".into());
    if let Some(target) = &mut m.target {
        target.label = Reading::Read("unconfined".into());
    }
    m.probes.seize = Attempt::Errno(Errno::EPERM);
    let text = attach(&report(Some(m), Vec::new(), Ssh::none("none", None)), PLAIN);
    assert!(text.contains("\nblocker capability: "), "{text}");
    assert!(text.contains("\nperhaps lsm: ") && !text.contains("\nand     lsm"), "{text}");
}
