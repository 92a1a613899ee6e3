//! sshd in a seat, where people's sshds failed: odd ids, no privileges, folders that were mounted over,
//! noisy start-up files, another login.

use std::time::{Duration, Instant};

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::alias;
use podbench_test_support::pods::pod;
use podbench_test_support::policy::{Policies, mutates, put};
use podbench_test_support::process::{run, run_with};
use podbench_test_support::recording;
use serde_json::{Value, json};

use crate::world::{ladder, person, text, world};

#[test]
fn any_uid_with_any_gid_logs_in_as_itself_without_privileges_and_without_su() {
    let ns = Namespace::scratch("any-ids");
    let ids =
        [(1, 0), (1000, 1000), (33, 4321), (65532, 7), (1_000_680_000, 0), (2_147_483_647, 2_147_483_647)];
    let pods: Vec<Value> = ids.iter().map(|(uid, gid)| pod(&format!("u{uid}"), *uid, *gid)).collect();
    ns.pods(&pods);
    ns.label("pod-security.kubernetes.io/enforce=restricted");
    let person = person(&ns);
    for (uid, gid) in ids {
        let report = person.attach(&[&format!("u{uid}")]);
        assert_eq!(ladder(&report), ["degraded landed kubelet"], "{report:#}");
        let script = "id -u; id -g; [ \"$(whoami)\" = \"$USER\" ] && echo named; cd && touch x && rm x && echo home; \
                      grep -E 'NoNewPrivs|CapEff' /proc/self/status | tr -d '\\t'; ps -eo comm= | grep -cE '^(su|sudo|runuser|gosu)$'";
        let said = person.ssh(&[&alias(&report), script]).stdout;
        let want = format!("{uid}\n{gid}\nnamed\nhome\nCapEff:0000000000000000\nNoNewPrivs:1\n0\n");
        assert_eq!(said, want, "{uid}:{gid}");
    }
}

#[test]
fn another_login_is_refused_at_once_and_not_left_hanging() {
    let ns = Namespace::scratch("login");
    ns.pods(&[pod("api", 1000, 1000)]);
    let person = person(&ns);
    let alias = alias(&person.attach(&["api"]));
    for login in ["root", "nobody", "no-such-user"] {
        let start = Instant::now();
        let said = person.ssh(&["-o", "ControlPath=none", "-l", login, &alias, "id -u"]);
        assert_eq!(said.code, 255, "{login} was let in: {said:?}");
        assert!(said.stderr.contains("Permission denied"), "{login}: {said:?}");
        assert!(start.elapsed() < Duration::from_secs(20), "{login}: {:?}", start.elapsed());
    }
}

#[test]
fn a_volume_over_run_takes_the_privilege_separation_folder_away_and_ssh_still_works() {
    let ns = Namespace::scratch("run");
    let pods = ["user", "root"].map(|name| {
        let mut pod = pod(name, 1000, 1000);
        pod["spec"]["volumes"] = json!([{"name": "scratch", "emptyDir": {}}]);
        pod
    });
    ns.pods(&pods);
    let person = person(&ns);
    for (name, rung, uid) in [("user", "degraded", "1000"), ("root", "full", "0")] {
        let report = person.attach(&[name, "--max-rung", rung, "--mount", "scratch:/run"]);
        assert_eq!(text(&report, "/rung/measured"), rung, "{report:#}");
        assert_eq!(person.ssh(&[&alias(&report), "id -u"]).text(), uid);
    }
}

#[test]
fn a_root_seat_that_could_run_no_sshd_is_withdrawn_where_the_targets_own_ids_can() {
    let ns = Namespace::scratch("audit");
    ns.pods(&[pod("api", 1000, 1000)]);
    let capabilities = "{\"add\": [\"SYS_PTRACE\"], \"drop\": [\"ALL\"]}";
    let expression = put("c.securityContext.runAsUser == 0", "/securityContext/capabilities", capabilities);
    let policies = Policies::apply(&ns, &mutates(&ns, "api", &expression));
    let root = json!({"name": "probe", "image": "x", "securityContext": {"runAsUser": 0, "capabilities": {"add": ["CHOWN"]}}});
    policies.in_force("api", &root, |ran| ran.stdout.contains("SYS_PTRACE"));
    let person = person(&ns);
    let report = person.attach(&["api", "--max-rung", "full"]);
    assert_eq!(ladder(&report), ["full withdrawn rehearsal", "degraded landed kubelet"], "{report:#}");
    assert!(text(&report, "/ladder/0/reason").contains("sshd"), "{report:#}");
    assert_eq!(report.pointer("/supports/liveAttach/ok"), Some(&json!(true)), "{report:#}");
    assert_eq!(person.ssh(&[&alias(&report), "echo in"]).text(), "in");
}

#[test]
fn a_terminal_is_had_without_root_and_in_a_user_namespace() {
    let (ns, person) = world("tty", &["userns"]);
    ns.pods(&[pod("user", 1000, 1000)]);
    for name in ["user", "userns"] {
        let alias = alias(&person.attach(&[name]));
        let said = person.ssh(&["-tt", &alias, "tty; [ -t 0 ] && [ -t 1 ] && echo terminal"]);
        assert!(said.stdout.contains("/dev/pts/") && said.stdout.contains("terminal"), "{name}: {said:?}");
    }
}

#[test]
fn the_targets_environment_is_had_to_the_byte_by_its_peer_and_by_nobody_else() {
    let ns = Namespace::scratch("environ");
    let value = "a b\"c'\\ $(id)\nand a second line\t=";
    let mut api = pod("api", 1000, 1000);
    api["spec"]["containers"][0]["env"] = json!([{"name": "FOO", "value": value.replace("$(", "$$(")}]);
    ns.pods(&[api]);
    let person = person(&ns);
    let report = person.attach(&["api"]);
    let print = "tr '\\0' '\\1' </proc/1/environ";
    let said = person.ssh(&[&alias(&report), print]).expect_code(0).stdout;
    let foo = said.split('\u{1}').find_map(|v| v.strip_prefix("FOO="));
    assert_eq!(foo, Some(value), "{said:?}");
    // A seat with other ids, without a capability.
    let other = person.attach(&["api", "--new", "--max-rung", "seat"]);
    let said = person.ssh(&[&alias(&other), &format!("{print}; ps axeww")]);
    assert!(said.stderr.contains("Permission denied") && !said.stdout.contains("second line"), "{said:?}");
}

#[test]
fn a_noisy_start_up_file_breaks_no_transfer() {
    let ns = Namespace::scratch("noisy");
    ns.pods(&[pod("api", 1000, 1000)]);
    let person = person(&ns);
    let alias = alias(&person.attach(&["api"]));
    let noise = "for f in .bashrc .profile .bash_profile; do echo 'echo welcome to production; echo beware >&2' >$f; done";
    person.ssh(&[&alias, &format!("cd && {noise}")]).expect_code(0);
    person.hang_up(&alias);
    let file = person.home().join("file");
    std::fs::write(&file, "the file\n").unwrap();
    let local = file.to_str().unwrap();
    for how in [&["-O", "-q"][..], &["-s", "-q"][..]] {
        let (there, back) = (format!("{alias}:there"), person.home().join("back"));
        let scp = |words: &[&str]| run(person.ssh_command("scp", &[how, words].concat()));
        scp(&[local, &there]).expect_code(0);
        scp(&[&there, back.to_str().unwrap()]).expect_code(0);
        assert_eq!(std::fs::read_to_string(&back).unwrap(), "the file\n", "{how:?}");
    }
    let sftp = person.ssh_command("sftp", &["-q", "-b", "-", &alias]);
    let said = run_with(sftp, b"ls there\n", Duration::from_secs(30)).expect_code(0);
    assert!(said.stdout.contains("there"), "{said:?}");
    // What rsync, git and an editor's bootstrap speak over: a program's own stdout, and not a byte more.
    let said = person.ssh(&[&alias, "printf 'only this'"]).expect_code(0);
    assert_eq!(said.stdout, "only this", "{said:?}");
    // A person's own shell greets all the same.
    let shell = run_with(person.ssh_command("ssh", &["-tt", &alias]), b"exit\n", Duration::from_secs(30));
    assert!(shell.stdout.contains("welcome to production"), "{shell:?}");
}

#[test]
fn every_folder_on_the_way_to_a_helper_is_roots_and_nobody_elses_to_write() {
    let (ns, person) = world("lint", &["root"]);
    let report = person.attach(&["root"]);
    let script = "for f in /usr/local/bin/podbench /usr/sbin/sshd /usr/bin/bash /usr/bin/ssh-keygen /usr/bin/getent; do \
                  p=$(readlink -f $f) || echo missing $f; while [ \"$p\" != / ]; do stat -c '%u:%g %a %n' \"$p\"; p=$(dirname \"$p\"); done; \
                  stat -c '%u:%g %a %n' /; done";
    let said = ns.exec("root", text(&report, "/seat/name"), &["bash", "-c", script]).expect_code(0).stdout;
    assert!(said.lines().count() >= 20, "{said}");
    for line in said.lines() {
        assert!(line.starts_with("0:0 755 "), "{line}");
    }
}

#[test]
fn an_attach_moves_some_kilobytes_and_pushes_no_program() {
    let ns = Namespace::scratch("bytes");
    ns.pods(&[pod("api", 1000, 1000)]);
    let mut person = person(&ns);
    let file = person.home().join("transcript.jsonl");
    person.env.push(("PODBENCH_TRANSCRIPT".into(), file.display().to_string()));
    person.attach(&["api"]);
    let calls = recording::read(&file);
    let sent: usize = calls.iter().map(|c| c.stdin.as_ref().map_or(0, String::len)).sum();
    let got: usize = calls.iter().map(|c| c.stdout.len() + c.stderr.len()).sum();
    assert!(sent > 1000 && sent < 64 * 1024 && got < 256 * 1024, "{sent} bytes sent, {got} received");
    let into_pod = calls.iter().filter(|c| c.argv.iter().any(|w| w == "exec"));
    assert!(into_pod.clone().count() > 0);
    assert!(into_pod.clone().all(|c| c.stdin.as_ref().is_none_or(String::is_empty)), "something was pushed");
}
