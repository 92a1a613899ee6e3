use podbench_contract::reading::Errno;

use super::*;
use crate::report::text::tests::{alias, measured};

const EXEC: &str = "kubectl exec -it -n demo api -c podbench-1 -- sh";
const EPERM: Attempt = Attempt::Errno(Errno::EPERM);

fn rows(m: &Measurement) -> Supports {
    supports(Ok(m), &alias(None), EXEC)
}

#[test]
fn each_row_rests_on_its_own_reading() {
    let all = rows(&measured());
    let works = [&all.live_attach, &all.read_only, &all.launch, &all.ssh, &all.exec].map(|s| s.ok);
    assert_eq!(works, [Some(true); 5]);
    assert_eq!(all.iterate.ok, Some(false));

    let mut m = measured();
    m.probes.seize = EPERM;
    let some = rows(&m);
    assert_eq!(
        (some.live_attach.ok, some.read_only.ok, some.launch.ok),
        (Some(false), Some(true), Some(true))
    );
    assert!(some.live_attach.why.starts_with("EPERM, blocked by: "), "{}", some.live_attach.why);

    m.probes.reads.maps = EPERM;
    assert_eq!(rows(&m).read_only, row(Some(false), "root ok, maps EPERM, environ ok"));
    m.probes.child = Attempt::Signal(31);
    assert_eq!(rows(&m).launch.ok, Some(false));
    assert!(rows(&m).launch.why.contains("signal 31"));
}

#[test]
fn an_attach_that_works_says_nothing_about_the_reads() {
    let mut m = measured();
    m.probes.reads.environ = EPERM;
    assert_eq!((rows(&m).live_attach.ok, rows(&m).read_only.ok), (Some(true), Some(false)));
}

#[test]
fn what_nobody_tried_is_not_measured() {
    let mut m = measured();
    m.probes = podbench_contract::measurement::Probes::default();
    let all = rows(&m);
    for support in [&all.live_attach, &all.read_only, &all.launch] {
        assert_eq!(support, &unknown());
    }
    assert_eq!((all.ssh.ok, all.exec), (Some(true), row(Some(true), EXEC)), "the reply itself came by exec");
    let nothing = supports(Err("exec failed"), &alias(None), EXEC);
    assert_eq!((nothing.exec.ok, nothing.live_attach.ok), (None, None));
    assert_eq!(nothing.live_attach.why, "not measured: exec failed");
    let mut m = measured();
    m.probes.reads.maps = Attempt::NotTried;
    assert_eq!(rows(&m).read_only.ok, None);
}

#[test]
fn without_a_process_of_the_target_there_is_nothing_to_attach_to() {
    let mut m = measured();
    m.target = None;
    m.probes.seize = Attempt::NotTried;
    m.probes.reads = podbench_contract::measurement::Reads::default();
    let all = rows(&m);
    assert_eq!((all.live_attach.ok, all.read_only.ok, all.launch.ok), (Some(false), Some(false), Some(true)));
    assert!(all.live_attach.why.contains("no process"));
}

#[test]
fn a_debugger_is_named_only_where_it_is() {
    let mut m = measured();
    assert_eq!(rows(&m).live_attach.why, "podbench dbg 1");
    m.debuggers = vec!["strace".into()];
    assert_eq!(rows(&m).launch.why, "strace PROGRAM");
    for known in DEBUGGERS {
        m.debuggers = vec![known.name.into()];
        let rows = rows(&m);
        assert_eq!(rows.launch.why, known.launch("PROGRAM"));
        match known.attach(1) {
            Some(command) => assert_eq!(rows.live_attach.why, command),
            None => assert!(rows.live_attach.why.contains(known.name), "{}", rows.live_attach.why),
        }
    }
    m.debuggers = vec!["\u{1b}".into()];
    assert!(rows(&m).live_attach.why.contains("no debugger"));
}

#[test]
fn an_sshd_that_fails_in_the_seat_is_no_ssh() {
    let mut m = measured();
    m.sshd.round_trip.ok = false;
    m.sshd.round_trip.stage = "config".into();
    m.sshd.round_trip.why = Some("Missing privilege separation directory".into());
    let ssh = rows(&m).ssh;
    assert_eq!(ssh.ok, Some(false));
    assert!(ssh.why.contains("config") && ssh.why.contains("privilege separation"), "{}", ssh.why);
    // A test that was too slow has found nothing wrong.
    m.sshd.round_trip.late = true;
    let ssh = rows(&m).ssh;
    assert!(ssh.ok.is_none() && ssh.why.contains("didn't end in time"), "{}", ssh.why);
    let none = Ssh::none("no login", None);
    assert_eq!(supports(Ok(&measured()), &none, EXEC).ssh, row(Some(false), "no login"));
}
