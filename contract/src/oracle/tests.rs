use super::*;
use crate::measurement::{Caps, Probes, Reads};

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
            reads: Reads::default(),
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
    m.target.as_mut().unwrap().uid_map = Reading::Read("0 1000 1".into());
    assert_eq!(kinds(&m), [Kind::UserNamespace]);
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
