//! `podbench capreport`: what a debugger can do from this seat, and every mechanism that stops the
//! rest. The verdict is the contract's; here it is put into words.

use std::fmt::Write as _;
use std::path::Path;

use podbench_contract::exit;
use podbench_contract::measurement::{Attribution, Measurement, Node, Probes, Process};
use podbench_contract::oracle::{self, Blocker, Verdict};
use podbench_contract::reading::{Errno, Reading};
use podbench_contract::rung::Rung;
use podbench_contract::text::escape;
use serde::Serialize;

use crate::cli::Capreport;
use crate::measure::{Asked, collect};
use crate::{out, pids};

/// `podbench capreport --json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    schema: &'static str,
    verdict: Verdict,
    exit: u8,
    rung: Option<Rung>,
    blockers: Vec<Blocker>,
    seat: &'a Process,
    target: Option<&'a Process>,
    attribution: &'a Attribution,
    probes: &'a Probes,
    node: &'a Node,
    debuggers: &'a [String],
}

/// `podbench capreport`.
pub(crate) fn run(asked: &Capreport) -> u8 {
    if let Err(code) = known(asked.pid) {
        return code;
    }
    let measured = collect(&Asked { cid: asked.cid.clone(), pid: asked.pid, probe: true });
    let verdict = oracle::verdict(&measured);
    let text = if asked.json { json(&measured, verdict) } else { Ok(words(&measured, verdict)) };
    match text.map(|text| out::text(&text)) {
        Ok(exit::OK) => verdict.exit(),
        Ok(code) => code,
        Err(e) => {
            out::note(&e.to_string());
            exit::FAILED
        }
    }
}

/// Is there such a process? Says so where there isn't.
///
/// # Errors
/// The exit code.
pub(crate) fn known(pid: Option<u32>) -> Result<(), u8> {
    match pid.filter(|pid| !Path::new(&format!("/proc/{pid}")).is_dir()) {
        None => Ok(()),
        Some(pid) => {
            out::note(&format!("there is no process {pid}: podbench pids shows what there is"));
            Err(exit::USAGE)
        }
    }
}

fn json(m: &Measurement, verdict: Verdict) -> Result<String, serde_json::Error> {
    let report = Report {
        schema: "podbench/capreport/v1",
        verdict,
        exit: verdict.exit(),
        rung: oracle::measured_rung(m),
        blockers: oracle::blockers(m),
        seat: &m.seat,
        target: m.target.as_ref(),
        attribution: &m.attribution,
        probes: &m.probes,
        node: &m.node,
        debuggers: &m.debuggers,
    };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}

fn words(m: &Measurement, verdict: Verdict) -> String {
    let mut text = String::new();
    let mut row = |name: &str, words: &str| row(&mut text, name, words);
    row(
        "can",
        match verdict {
            Verdict::LiveAttach => "attach a debugger to the running target",
            Verdict::ReadOnly => "read the target's root, maps and environment; not attach",
            Verdict::LaunchOnly => "debug only what a debugger starts itself",
            Verdict::Nothing => "nothing: neither attach, nor read, nor debug a process of its own",
            Verdict::NotMeasured => "nothing was measured",
        },
    );
    row("seat", &process(&m.seat));
    row("", &confinement(&m.seat));
    match &m.target {
        Some(target) => {
            row("target", &format!("pid {} ({})  {}", target.pid, target.name, process(target)));
            row("", &confinement(target));
        }
        None => row("target", "no process of it was found"),
    }
    row("", pids::note(&m.attribution).trim_end().trim_start_matches("target: "));
    let p = &m.probes;
    row(
        "ptrace",
        &format!("target {}; a child of its own {}; a pid that can't exist {}", p.seize, p.child, p.nobody),
    );
    let r = &p.reads;
    row("reads", &format!("root {}, maps {}, environ {}, mem {}", r.root, r.maps, r.environ, r.mem));
    row("", &format!("cmdline {}, status {}, fd {}, exe {}", r.cmdline, r.status, r.fd, r.exe));
    row("capture", &format!("packet socket {}", p.packets));
    row("node", &node(&m.node));
    row("debugger", &debuggers(&m.debuggers));
    text.push_str(&blockers(m));
    text
}

/// What stops a debugger, a line each and one for what lifts it.
pub(crate) fn blockers(m: &Measurement) -> String {
    let mut text = String::new();
    for (n, blocker) in oracle::blockers(m).iter().enumerate() {
        let name = match (n, blocker.certain) {
            (0, _) => "blocker",
            (_, true) => "then",
            (_, false) => "perhaps",
        };
        row(&mut text, name, &format!("{}: {}", blocker.kind, blocker.detail));
        let who: Vec<_> = blocker.who.iter().map(|who| who.as_str()).collect();
        row(&mut text, "", &format!("lifted by: {} ({})", blocker.remedy, who.join(", ")));
    }
    text
}

fn row(text: &mut String, name: &str, words: &str) {
    let _ = writeln!(text, "{name:<8} {}", escape(words, 600));
}

fn process(p: &Process) -> String {
    let id = |id: Option<u32>| id.map_or_else(|| "?".to_owned(), |id| id.to_string());
    let caps = match p.cap_eff.value() {
        Some(caps) if caps.has_sys_ptrace() => format!("CapEff {caps} (CAP_SYS_PTRACE)"),
        Some(caps) => format!("CapEff {caps}"),
        None => "CapEff unread".to_owned(),
    };
    format!("uid {}  gid {}  {caps}", id(p.uid().map(|u| u.0)), id(p.gid().map(|g| g.0)))
}

/// What holds a process back beside its ids.
fn confinement(p: &Process) -> String {
    let bounding = p.cap_bnd.value().map_or_else(|| "unread".to_owned(), ToString::to_string);
    let privileges = match p.no_new_privs.value() {
        Some(true) => "no_new_privs",
        Some(false) => "may gain privileges",
        None => "no_new_privs unread",
    };
    let seccomp = match p.seccomp.value() {
        Some(0) => "no seccomp".to_owned(),
        Some(1) => "seccomp strict".to_owned(),
        Some(2) => "seccomp filter".to_owned(),
        Some(mode) => format!("seccomp mode {mode}"),
        None => "seccomp unread".to_owned(),
    };
    let label = match &p.label {
        Reading::Read(label) => format!("label {label}"),
        Reading::Denied(Errno::EINVAL | Errno::ENOENT) => "no security label".to_owned(),
        Reading::Denied(errno) => format!("label unread ({errno})"),
        Reading::NotTried => "label not measured".to_owned(),
    };
    format!("CapBnd {bounding}; {privileges}; {seccomp}; {label}")
}

fn debuggers(there: &[String]) -> String {
    if there.is_empty() { "none in the seat's image".to_owned() } else { there.join(", ") }
}

fn node(node: &Node) -> String {
    let yama = match &node.yama {
        Reading::Read(scope) => format!("Yama ptrace_scope {scope}"),
        absent if absent.is_absent() => "no Yama".to_owned(),
        Reading::Denied(errno) => format!("Yama unread ({errno})"),
        Reading::NotTried => "Yama not measured".to_owned(),
    };
    let kernel = node.kernel.value().map_or("unread", String::as_str);
    format!("kernel {kernel} {}; {yama}", node.machine)
}

#[cfg(test)]
mod tests {
    use podbench_contract::ids::{Gid, Uid};
    use podbench_contract::measurement::{Caps, Ids};
    use podbench_contract::reading::Attempt;

    use super::*;

    fn process(uid: u32) -> Process {
        let ids = Ids { real: uid, effective: uid, saved: uid, fs: uid };
        Process {
            pid: 1,
            name: "server\u{1b}[2J".into(),
            uids: Reading::Read(Ids { real: Uid(uid), effective: Uid(uid), saved: Uid(uid), fs: Uid(uid) }),
            gids: Reading::Read(Ids {
                real: Gid(ids.real),
                effective: Gid(uid),
                saved: Gid(uid),
                fs: Gid(uid),
            }),
            cap_eff: Reading::Read(Caps(0)),
            ..Process::default()
        }
    }

    #[test]
    fn a_report_names_the_blocker_and_what_lifts_it_and_moves_no_cursor() {
        let mut m =
            Measurement { seat: process(65532), target: Some(process(1234)), ..Measurement::default() };
        m.probes.seize = Attempt::Errno(Errno::EPERM);
        m.probes.nobody = Attempt::Errno(Errno::ESRCH);
        m.probes.child = Attempt::Ok;
        m.node.yama = Reading::Denied(Errno::ENOENT);
        let text = words(&m, oracle::verdict(&m));
        assert!(text.starts_with("can      debug only what a debugger starts itself\n"), "{text}");
        assert!(text.contains("blocker  uid: ") && text.contains("--target-uid 1234"), "{text}");
        assert!(text.contains("no Yama") && !text.contains('\u{1b}'), "{text}");
        assert!(text.contains("debugger none in the seat's image"), "{text}");
        let value: serde_json::Value = serde_json::from_str(&json(&m, oracle::verdict(&m)).unwrap()).unwrap();
        assert_eq!(value["exit"], 15);
        assert_eq!(value["blockers"][0]["who"], serde_json::json!(["user"]));
        assert_eq!(value["blockers"][0]["kind"], "uid");
    }

    #[test]
    fn what_stands_behind_the_first_blocker_is_told_from_what_may_stand_there() {
        let mut m =
            Measurement { seat: process(1000), target: Some(process(1234)), ..Measurement::default() };
        m.seat.label = Reading::Read("runtime (enforce)".into());
        m.target.as_mut().unwrap().label = Reading::Read("unconfined".into());
        m.debuggers = vec!["gdb".into()];
        m.probes.seize = Attempt::Errno(Errno::EPERM);
        m.probes.nobody = Attempt::Errno(Errno::ESRCH);
        m.node.yama = Reading::Read(1);
        let text = words(&m, oracle::verdict(&m));
        let heads: Vec<_> = text.lines().map(|l| l.split(':').next().unwrap().trim()).collect();
        for head in ["blocker  uid", "then     yama", "perhaps  lsm"] {
            assert!(heads.contains(&head), "{head}: {text}");
        }
        assert!(
            text.contains("(you, the namespace's owner)") && text.contains("label runtime (enforce)"),
            "{text}"
        );
        assert!(text.contains("debugger gdb\n"), "{text}");
    }
}
