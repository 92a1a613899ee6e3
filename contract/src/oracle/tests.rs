use super::*;
use proptest::prelude::*;

use crate::measurement::{Caps, Ids, Probes, Reads};
use crate::reading::{Errno, Reading};

fn ids<T: Copy>(id: T) -> Reading<Ids<T>> {
    Reading::Read(Ids { real: id, effective: id, saved: id, fs: id })
}

fn process(uid: u32, gid: u32, caps: u64) -> Process {
    Process {
        pid: 1,
        uids: ids(Uid(uid)),
        gids: ids(Gid(gid)),
        cap_prm: Reading::Read(Caps(caps)),
        cap_eff: Reading::Read(Caps(caps)),
        tracer: Reading::Read(0),
        uid_map: Reading::Read("0 0 4294967295".into()),
        owner: Reading::Read(Uid(uid)),
        ..Process::default()
    }
}

const DENIED: Attempt = Attempt::Errno(Errno::EPERM);
const PTRACE: u64 = 1 << 19;

/// A seat at the target's ids, refused; each test changes one thing.
fn refused() -> Measurement {
    Measurement {
        seat: process(1234, 4321, 0),
        target: Some(process(1234, 4321, 0)),
        probes: Probes {
            seize: DENIED,
            nobody: Attempt::Errno(Errno::ESRCH),
            child: Attempt::Ok,
            ..Probes::default()
        },
        ..Measurement::default()
    }
}

fn kinds(m: &Measurement) -> Vec<Kind> {
    blockers(m).into_iter().map(|b| b.kind).collect()
}

#[test]
fn the_verdict_follows_what_worked() {
    let mut m = refused();
    assert_eq!(verdict(&m), Verdict::LaunchOnly);
    m.probes.reads = Reads { root: Attempt::Ok, maps: Attempt::Ok, environ: Attempt::Ok, ..Reads::default() };
    assert_eq!(verdict(&m), Verdict::ReadOnly);
    m.probes.seize = Attempt::Ok;
    assert_eq!(verdict(&m), Verdict::LiveAttach);
    assert_eq!(verdict(&Measurement::default()), Verdict::NotMeasured);
    m.probes = Probes { seize: DENIED, child: DENIED, ..Probes::default() };
    assert_eq!(verdict(&m), Verdict::Nothing);
}

#[test]
fn a_filter_is_told_by_a_pid_that_cannot_exist_and_outranks_yama() {
    let mut m = refused();
    m.probes.nobody = Attempt::Errno(Errno::ENOSYS);
    m.node.yama = Reading::Read(1);
    assert_eq!(kinds(&m), [Kind::Seccomp, Kind::Yama]);
    m.probes.nobody = Attempt::Signal(31);
    assert_eq!(kinds(&m).first(), Some(&Kind::Seccomp));
}

#[test]
fn one_wrong_id_is_enough() {
    let mut m = refused();
    m.seat = process(1234, 0, 0);
    assert_eq!(kinds(&m), [Kind::Gid]);
    m.seat = process(65532, 65532, 0);
    assert_eq!(kinds(&m), [Kind::Uid]);
    assert!(blockers(&m).first().unwrap().remedy.contains("--target-uid 1234"));
}

#[test]
fn a_stripped_root_seat_lacks_the_capability() {
    let mut m = refused();
    m.seat = process(0, 0, 0xa804_25fb);
    assert_eq!(kinds(&m), [Kind::Capability]);
    m.target = Some(process(0, 0, u64::MAX));
    assert_eq!(kinds(&m), [Kind::Capability], "a target with more capabilities than the seat");
}

#[test]
fn yama_counts_only_where_the_capability_does_not_lift_it() {
    let mut m = refused();
    m.node.yama = Reading::Read(1);
    assert_eq!(kinds(&m), [Kind::Yama]);
    m.seat = process(0, 0, PTRACE);
    assert_eq!(kinds(&m), [Kind::Unknown]);
    m.node.yama = Reading::Read(3);
    assert_eq!(kinds(&m), [Kind::Yama]);
}

#[test]
fn no_yama_file_is_no_yama() {
    let mut m = refused();
    m.node.yama = Reading::Denied(Errno::ENOENT);
    let only = blockers(&m);
    assert_eq!(only.first().unwrap().kind, Kind::Unknown);
    assert!(only.first().unwrap().detail.contains("has none"));
}

#[test]
fn a_status_file_of_another_owner_is_a_target_that_is_not_dumpable() {
    let mut m = refused();
    m.target.as_mut().unwrap().owner = Reading::Read(Uid::ROOT);
    assert_eq!(kinds(&m), [Kind::NotDumpable]);
}

#[test]
fn a_tracer_a_namespace_and_a_label_are_named() {
    let mut m = refused();
    m.target.as_mut().unwrap().tracer = Reading::Read(77);
    assert_eq!(kinds(&m), [Kind::AlreadyTraced]);
    let mut m = refused();
    m.seat.cap_eff = Reading::Read(Caps(PTRACE));
    m.seat.uid_map = Reading::Read("0 65536 65536".into());
    assert_eq!(kinds(&m), [Kind::UserNamespace]);
    m.seat.uid_map = Reading::Read("0 0 4294967295".into());
    m.target.as_mut().unwrap().uid_map = Reading::Read("0 65536 65536".into());
    assert_eq!(kinds(&m), [Kind::Unknown], "capabilities count in every namespace below");
    let mut m = refused();
    m.seat.label = Reading::Read("pb-noptrace (enforce)".into());
    m.probes.seize = Attempt::Errno(Errno::EACCES);
    assert_eq!(kinds(&m), [Kind::Lsm]);
}

#[test]
fn the_rung_is_what_the_kernel_gave_and_not_what_was_asked() {
    let mut m = refused();
    assert_eq!(measured_rung(&m), Some(Rung::Degraded));
    m.seat = process(0, 0, PTRACE);
    assert_eq!(measured_rung(&m), Some(Rung::Full));
    m.seat = process(0, 0, 0);
    assert_eq!(measured_rung(&m), Some(Rung::Seat));
    m.seat.cap_eff = Reading::NotTried;
    assert_eq!(measured_rung(&m), None);
}

#[test]
fn the_kernels_order_decides_which_comes_first() {
    let mut m = refused();
    m.node.yama = Reading::Read(1);
    m.target.as_mut().unwrap().tracer = Reading::Read(77);
    assert_eq!(kinds(&m), [Kind::Yama, Kind::AlreadyTraced], "another tracer is looked for last");
    m.probes.nobody = DENIED;
    m.seat = process(65532, 65532, 0);
    assert_eq!(kinds(&m), [Kind::Seccomp, Kind::Uid, Kind::Yama, Kind::AlreadyTraced]);
}

#[test]
fn what_the_capability_lifts_is_not_listed_behind_a_blocker_that_it_lifts() {
    let mut m = refused();
    m.node.yama = Reading::Read(2);
    m.target.as_mut().unwrap().owner = Reading::Read(Uid::ROOT);
    assert_eq!(kinds(&m), [Kind::NotDumpable]);
    m.node.yama = Reading::Read(3);
    assert_eq!(kinds(&m), [Kind::NotDumpable, Kind::Yama], "nothing lifts 3");
}

#[test]
fn ptrace_compares_the_real_id_and_files_another() {
    let mut m = refused();
    m.probes.reads.maps = Attempt::Ok;
    m.seat.uids = Reading::Read(Ids { real: Uid(7), effective: Uid(1234), saved: Uid(1234), fs: Uid(1234) });
    assert_eq!(kinds(&m), [Kind::Uid]);
    m.seat = process(1234, 4321, 0);
    m.node.yama = Reading::Read(0);
    m.target.as_mut().unwrap().uid_map = Reading::Read("0 1000 1".into());
    assert_eq!(kinds(&m), [Kind::Unknown], "a target that can be read is no stranger");
}

#[test]
fn a_yama_that_cannot_be_read_is_told_by_a_fresh_child_and_else_only_suspected() {
    let mut m = refused();
    m.node.yama = Reading::Denied(Errno::EACCES);
    m.probes.reads.maps = Attempt::Ok;
    let alone = primary(&m).unwrap();
    assert_eq!((alone.kind, alone.certain), (Kind::Yama, false));
    m.probes.child = DENIED;
    let shown = primary(&m).unwrap();
    assert_eq!((shown.kind, shown.certain), (Kind::Yama, true));
}

#[test]
fn eacces_without_a_readable_label_is_still_a_security_module() {
    let mut m = refused();
    m.probes.seize = Attempt::Errno(Errno::EACCES);
    m.seat.label = Reading::Denied(Errno::EINVAL);
    assert_eq!(kinds(&m), [Kind::Lsm]);
}

#[test]
fn a_profile_that_only_complains_is_nobodys_blocker() {
    for (label, enforcing) in [
        ("unconfined", false),
        ("", false),
        ("x (complain)", false),
        ("x (unconfined)", false),
        ("x (enforce)", true),
        ("x (kill)", true),
        ("odd (complain) name (enforce)", true),
        ("x//&unconfined (enforce)", true),
        ("u:r:tracer_t", true),
    ] {
        assert_eq!(evidence::enforces(label), enforcing, "{label}");
    }
}

#[test]
fn a_target_that_ended_or_is_the_kernels_own_is_said_to_be_and_cannot_be_read() {
    let mut m = refused();
    m.probes.reads = Reads { root: Attempt::Ok, maps: Attempt::Ok, environ: Attempt::Ok, ..Reads::default() };
    m.target.as_mut().unwrap().state = Reading::Read('Z');
    assert!(primary(&m).unwrap().detail.contains("has ended"));
    m.target.as_mut().unwrap().state = Reading::Read('S');
    m.target.as_mut().unwrap().kernel_thread = Reading::Read(true);
    assert!(primary(&m).unwrap().detail.contains("kernel's own"));
    assert_eq!(verdict(&m), Verdict::LaunchOnly);
}

fn attempts() -> impl Strategy<Value = Attempt> {
    prop_oneof![
        Just(Attempt::Ok),
        Just(Attempt::NotTried),
        (0..50).prop_map(|e| Attempt::Errno(Errno(e))),
        Just(Attempt::Signal(31)),
    ]
}

fn readings<T: Clone + std::fmt::Debug + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Reading<T>> {
    prop_oneof![
        value.prop_map(Reading::Read),
        (0..40).prop_map(|e| Reading::Denied(Errno(e))),
        Just(Reading::NotTried)
    ]
}

fn processes() -> impl Strategy<Value = Process> {
    let label =
        prop_oneof![Just("unconfined"), Just("a (enforce)"), Just("a (complain)"), Just("u:r:t"), Just("")];
    let map = prop_oneof![Just("0 0 4294967295"), Just("0 1000 1")];
    (
        (0..3u32, 0..3u32, 0..3u32, readings(any::<u64>().prop_map(Caps)), readings(0..2u32)),
        (readings(label.prop_map(str::to_owned)), readings(map.prop_map(str::to_owned))),
        (
            readings((0..3u32).prop_map(Uid)),
            readings(any::<u64>()),
            readings(any::<bool>()),
            readings(any::<char>()),
        ),
    )
        .prop_map(
            |((uid, fs, gid, caps, tracer), (label, uid_map), (owner, user_ns, kernel_thread, state))| {
                let uids = Ids { real: Uid(uid), effective: Uid(fs), saved: Uid(uid), fs: Uid(fs) };
                Process {
                    uids: Reading::Read(uids),
                    gids: ids(Gid(gid)),
                    cap_prm: caps.clone(),
                    cap_eff: caps,
                    tracer,
                    label,
                    uid_map,
                    owner,
                    user_ns,
                    kernel_thread,
                    state,
                    ..Process::default()
                }
            },
        )
}

fn measurements() -> impl Strategy<Value = Measurement> {
    let probes = (attempts(), attempts(), attempts(), attempts(), attempts());
    (processes(), proptest::option::of(processes()), readings(0..5u32), probes).prop_map(
        |(seat, target, yama, (seize, nobody, child, maps, mem))| Measurement {
            seat,
            target,
            node: crate::measurement::Node { yama, ..Default::default() },
            probes: Probes {
                seize,
                nobody,
                child,
                reads: Reads { maps, mem, ..Reads::default() },
                ..Probes::default()
            },
            ..Measurement::default()
        },
    )
}

proptest! {
    #[test]
    fn a_refusal_always_has_a_blocker_and_nothing_else_has_one(m in measurements()) {
        let found = blockers(&m);
        let refused = m.probes.seize.is_tried() && !m.probes.seize.is_ok();
        prop_assert_eq!(refused, !found.is_empty());
        for b in &found {
            prop_assert!(!b.detail.is_empty() && !b.remedy.is_empty() && !b.who.is_empty(), "{b:?}");
            // A seat is never privileged, and nobody is told to make it so.
            prop_assert!(!b.remedy.contains("privileged"), "{b:?}");
        }
    }

    #[test]
    fn no_mechanism_is_named_twice(m in measurements()) {
        let mut named = kinds(&m);
        let all = named.len();
        named.sort_by_key(|k| k.as_str());
        named.dedup();
        prop_assert_eq!(named.len(), all);
    }

    /// What comes out of an old seat's reply has none of the newer fields.
    #[test]
    fn what_a_seat_measured_and_sent_is_judged_as_it_was_there(m in measurements()) {
        let sent = serde_json::to_vec(&m).unwrap();
        let read: Measurement = serde_json::from_slice(&sent).unwrap();
        prop_assert_eq!(blockers(&read), blockers(&m));
    }
}
