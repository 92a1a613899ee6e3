//! `podbench cp`: what arrives is whole, or isn't there.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::Person;
use podbench_test_support::pods::{container, pod};
use podbench_test_support::process::{Ran, eventually, run, run_with};
use podbench_test_support::proxy::{Cut, Faults, Kind, Proxy, Throttle, Way};

use crate::world::{PODBENCH, number, person, text};

fn digest(file: &Path) -> String {
    let mut command = Command::new("sha256sum");
    command.arg(file);
    run(command).text().split(' ').next().unwrap().to_owned()
}

fn noise(file: &Path, mib: usize) {
    let mut command = Command::new("dd");
    command.args(["if=/dev/urandom", "bs=1M", &format!("count={mib}"), "status=none"]);
    command.arg(format!("of={}", file.display()));
    run(command).expect_code(0);
}

fn cp(person: &Person, from: &str, to: &str) -> Ran {
    person.podbench(&["cp", from, to])
}

/// What is in a seat's folder, a name a line.
fn there(ns: &Namespace, folder: &str) -> String {
    ns.exec("app", "podbench-1", &["ls", "-A", folder]).text()
}

/// The digest of a seat's file.
fn digest_there(ns: &Namespace, file: &str) -> String {
    ns.exec("app", "podbench-1", &["sha256sum", file]).text().split(' ').next().unwrap().to_owned()
}

/// Nothing of a copy that didn't come about is left in this folder.
#[track_caller]
fn nothing_left(folder: &Path) {
    let names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(".podbench-cp"))
        .collect();
    assert!(names.is_empty(), "{names:?}");
}

/// The commands that a failure says to try.
fn hints(said: &Ran) -> Vec<String> {
    said.stderr.lines().filter_map(|l| l.strip_prefix("try:   ")).map(str::to_owned).collect()
}

/// Runs one as it would be pasted.
fn paste(person: &Person, hint: &str) -> Ran {
    let line = hint.strip_prefix("podbench ").map_or(hint.to_owned(), |rest| format!("{PODBENCH} {rest}"));
    let mut command = person.command("sh");
    command.args(["-c", &line]);
    run_with(command, b"", Duration::from_secs(60))
}

fn world(what: &str) -> (Namespace, Person) {
    let ns = Namespace::scratch(what);
    ns.pods(&[pod("app", 1234, 2000)]);
    let person = person(&ns);
    (ns, person)
}

#[test]
fn files_and_folders_with_any_name_go_both_ways_and_are_the_same() {
    let (ns, person) = world("copy");
    let home = person.home();
    noise(&home.join("big"), 64);
    // No seat runs yet: one is landed.
    let said = person.podbench(&["cp", "big", "app:/tmp/", "-o", "json"]).expect_code(0).json();
    assert_eq!((text(&said, "/schema"), text(&said, "/to")), ("podbench/cp/v1", "app:/tmp/big"));
    assert_eq!((said["files"].as_u64(), said["bytes"].as_u64()), (Some(1), Some(64 << 20)));
    cp(&person, "app:/tmp/big", "back").expect_code(0);
    assert_eq!(digest(&home.join("big")), digest(&home.join("back")));
    assert_eq!(ns.seats("app").len(), 1, "the second copy lands no second seat");

    let odd = ["a b", "q\"uote", "it's", "st*r?", "back\\slash", "ümläut", "-dash", "$(x)", ".hidden"];
    let folder = home.join("odd ones");
    std::fs::create_dir_all(folder.join("below")).unwrap();
    for name in odd {
        std::fs::write(folder.join(name), name).unwrap();
        std::fs::write(folder.join("below").join(name), "").unwrap();
    }
    cp(&person, "odd ones", &format!("{}/app:/tmp/there", ns.name)).expect_code(0);
    cp(&person, "app:/tmp/there", "again").expect_code(0);
    // Into folders that are there already.
    std::fs::create_dir(home.join("into")).unwrap();
    cp(&person, "app:/tmp/there", "into").expect_code(0);
    for copy in ["again", "into/there"] {
        for name in odd {
            assert_eq!(std::fs::read_to_string(home.join(copy).join(name)).unwrap(), name);
            assert_eq!(
                std::fs::read_to_string(home.join(copy).join("below").join(name)).unwrap(),
                "",
                "{name}"
            );
        }
    }
    // A file of the seat's home, over one that is there.
    std::fs::write(home.join("note"), "one").unwrap();
    cp(&person, "note", "app:").expect_code(0);
    std::fs::write(home.join("note"), "two").unwrap();
    cp(&person, "note", "app:note").expect_code(0);
    cp(&person, "app:note", "read").expect_code(0);
    assert_eq!(std::fs::read_to_string(home.join("read")).unwrap(), "two");
}

#[test]
fn what_cannot_be_copied_is_told_and_leaves_nothing() {
    let (ns, person) = world("copy-no");
    let home = person.home();
    std::fs::write(home.join("file"), "x").unwrap();
    person.attach(&["app"]);
    std::fs::create_dir_all(home.join("taken/hostname")).unwrap();
    std::fs::create_dir(home.join("folder")).unwrap();
    std::fs::write(home.join("folder/in"), "x").unwrap();
    ns.exec("app", "podbench-1", &["sh", "-c", "mkdir -p /tmp/taken/file; echo old > /tmp/plain"])
        .expect_code(0);
    let mut fifo = Command::new("mkfifo");
    fifo.arg(home.join("fifo"));
    run(fifo).expect_code(0);
    for (from, to, words) in [
        ("app:/tmp/nosuch", "got", "nosuch"),
        ("app:/etc/hostname", "taken", "taken/hostname is a folder"),
        ("app:/tmp/taken", "file", "file is a file"),
        ("file", "app:/tmp/taken", "/tmp/taken/file is a folder in the seat"),
        ("folder", "app:/tmp/plain", "/tmp/plain is a file in the seat"),
        ("fifo", "app:/tmp/x", "neither a file nor a folder"),
        ("app:/root/secret", "got", "Permission denied"),
        ("file", "app:/proc/version", "/proc/version"),
        ("file", "app:/nosuch/folder/file", "No such file"),
        ("nosuch", "app:/tmp/", "nosuch"),
        ("file", "other", "neither side is in a pod"),
        ("app:/etc/passwd", "app:/b", "both sides are in a pod"),
    ] {
        let said = cp(&person, from, to).expect_code(2);
        assert!(said.stderr.contains(words), "{from} {to}: `{words}` is missing in:\n{}", said.stderr);
        let hints = hints(&said);
        assert!(!hints.is_empty(), "{from} {to}: no next command:\n{}", said.stderr);
        // What is written into the FIFO goes that way.
        let writer = (from == "fifo").then(|| {
            let mut sh = Command::new("sh");
            sh.args(["-c", "echo through > \"$0\""]).arg(home.join("fifo")).spawn().unwrap()
        });
        for hint in hints {
            paste(&person, &hint).expect_code(0);
        }
        if let Some(mut writer) = writer {
            assert!(writer.wait().unwrap().success());
            assert_eq!(ns.exec("app", "podbench-1", &["cat", "/tmp/x"]).text(), "through");
        }
    }
    let said = cp(&person, "app:/etc/hostname", "nofolder/here").expect_code(1);
    paste(&person, &hints(&said)[0]).expect_code(0);
    cp(&person, "app:/etc/hostname", "nofolder/here").expect_code(0);
    assert!(!home.join("got").exists() && !home.join("other").exists());
    assert_eq!(std::fs::read_to_string(home.join("file")).unwrap(), "x");
    assert_eq!(there(&ns, "/tmp/taken/file"), "");
    assert_eq!(ns.exec("app", "podbench-1", &["cat", "/tmp/plain"]).text(), "old");
    assert!(!there(&ns, "/tmp").contains(".podbench-"), "{}", there(&ns, "/tmp"));
    nothing_left(home);
    person.podbench(&["cp", "-n", "elsewhere", "file", &format!("{}/app:/tmp/", ns.name)]).expect_code(2);
}

#[test]
fn ctrl_c_leaves_no_half_file_or_folder() {
    let (ns, person) = world("copy-cut");
    let home = person.home();
    noise(&home.join("big"), 200);
    person.attach(&["app"]);
    let half = |signal: &str, from: &str, to: &str| {
        let mut child = person.podbench_command(&["cp", from, to]).stderr(Stdio::null()).spawn().unwrap();
        // It is on its way when something of it is somewhere.
        eventually("the copy is under way", Duration::from_secs(20), || {
            let here = std::fs::read_dir(home)
                .unwrap()
                .flatten()
                .any(|e| e.file_name().to_string_lossy().starts_with(".podbench-cp"));
            let there =
                ns.exec("app", "podbench-1", &["sh", "-c", "ls /tmp/*.podbench-* 2>/dev/null"]).code == 0;
            (here || there).then_some(())
        });
        let mut kill = Command::new("kill");
        kill.args([signal, &child.id().to_string()]);
        run(kill).expect_code(0);
        child.wait().unwrap().code()
    };
    assert_eq!(half("-INT", "big", "app:/tmp/up"), Some(130));
    std::fs::create_dir_all(home.join("folder/below")).unwrap();
    std::fs::write(home.join("folder/below/first"), "x").unwrap();
    std::fs::hard_link(home.join("big"), home.join("folder/big")).unwrap();
    assert_eq!(half("-INT", "folder", "app:/tmp/up"), Some(130));
    let there = there(&ns, "/tmp");
    assert!(!there.contains("up"), "half of it, or a part, is left: {there}");
    cp(&person, "big", "app:/tmp/whole").expect_code(0);
    assert_eq!(half("-INT", "app:/tmp/whole", "down"), Some(130));
    assert!(!home.join("down").exists());
    cp(&person, "app:/tmp/whole", "down").expect_code(0);
    assert_eq!(digest(&home.join("big")), digest(&home.join("down")));
}

/// A person whose way to a pod goes through a proxy.
fn behind(what: &str) -> (Namespace, Proxy, Person) {
    let ns = Namespace::scratch(what);
    ns.pods(&[pod("app", 1234, 2000)]);
    let proxy = Proxy::before(&ns.observer());
    let person = Person::new(PODBENCH, proxy.kubeconfig(), &ns.cluster.image);
    (ns, proxy, person)
}

/// Each exec is reset after so many bytes, as often as `times`.
fn cut(way: Way, after: u64, times: u64) -> Faults {
    Faults { cut: Some(Cut { of: Kind::is_exec, way, after, times }), ..Faults::default() }
}

/// Ends the shared connection here and in the proxy: what went through it before would count for a
/// cut, and its goodbye could be what is cut.
fn fresh(person: &Person, proxy: &Proxy, alias: &str) {
    person.hang_up(alias);
    proxy.kill_all();
    std::thread::sleep(Duration::from_millis(200));
}

#[test]
fn a_connection_that_is_cut_is_said_and_leaves_nothing_here_or_there() {
    for websocket in ["true", "false"] {
        let (ns, proxy, mut person) = behind("copy-cut");
        person.env.push(("KUBECTL_REMOTE_COMMAND_WEBSOCKETS".into(), websocket.into()));
        let home = person.home();
        std::fs::create_dir_all(home.join("folder/below")).unwrap();
        noise(&home.join("big"), 6);
        std::fs::write(home.join("folder/below/first"), "x").unwrap();
        std::fs::hard_link(home.join("big"), home.join("folder/big")).unwrap();
        let alias = podbench_test_support::person::alias(&person.attach(&["app"]));
        cp(&person, "folder", "app:/tmp/whole").expect_code(0);
        std::fs::create_dir(home.join("there")).unwrap();
        std::fs::write(home.join("there/big"), "old").unwrap();
        ns.exec("app", "podbench-1", &["sh", "-c", "mkdir -p /tmp/m/folder && echo old > /tmp/m/folder/big"])
            .expect_code(0);
        for (way, from, to) in [
            (Way::Up, "big", "app:/tmp/up"),
            (Way::Up, "folder", "app:/tmp/up"),
            (Way::Up, "folder", "app:/tmp/m"),
            (Way::Down, "app:/tmp/whole/big", "down"),
            (Way::Down, "app:/tmp/whole", "down"),
            (Way::Down, "app:/tmp/whole/big", "there"),
        ] {
            fresh(&person, &proxy, &alias);
            proxy.set(cut(way, 3_000_000, 1));
            let before = proxy.traffic().cuts;
            let said = cp(&person, from, to).expect_code(2);
            assert_eq!(proxy.traffic().cuts, before + 1, "{from} {to}: nothing was cut");
            assert!(said.stderr.contains("the connection was cut"), "{from} {to}: {}", said.stderr);
            assert!(said.stderr.contains(" is as it was"), "{from} {to}: {}", said.stderr);
            assert!(!said.stderr.contains("may be left"), "{from} {to}: {}", said.stderr);
            let tmp = there(&ns, "/tmp");
            assert!(!tmp.contains("up") && !tmp.contains(".podbench-"), "{from} {to}: {tmp}");
            assert_eq!(there(&ns, "/tmp/m"), "folder");
            assert_eq!(ns.exec("app", "podbench-1", &["cat", "/tmp/m/folder/big"]).text(), "old");
            nothing_left(home);
            nothing_left(&home.join("there"));
            assert!(!home.join("down").exists(), "{from} {to}");
            assert_eq!(std::fs::read_to_string(home.join("there/big")).unwrap(), "old");
            // What it says to try does it now.
            let hint = hints(&said);
            assert_eq!(hint.len(), 1, "{hint:?}");
            paste(&person, &hint[0]).expect_code(0);
            for at in ["down", "up"] {
                let _ =
                    std::fs::remove_dir_all(home.join(at)).or_else(|_| std::fs::remove_file(home.join(at)));
                ns.exec("app", "podbench-1", &["rm", "-rf", &format!("/tmp/{at}")]).expect_code(0);
            }
            ns.exec("app", "podbench-1", &["sh", "-c", "echo old > /tmp/m/folder/big"]).expect_code(0);
            std::fs::write(home.join("there/big"), "old").unwrap();
        }
        // Cut at the login, it isn't taken for the answer that a path is no folder.
        for (from, to) in [("folder", "app:/tmp/m"), ("app:/tmp/whole", "down")] {
            fresh(&person, &proxy, &alias);
            proxy.set(cut(Way::Up, 3_500, 1));
            let said = cp(&person, from, to).expect_code(2);
            let lost = ["there is no connection to the seat", "the connection was cut"];
            assert!(lost.iter().any(|words| said.stderr.contains(words)), "{}", said.stderr);
            assert_eq!(there(&ns, "/tmp/m"), "folder");
            nothing_left(home);
            paste(&person, &hints(&said)[0]).expect_code(0);
        }
    }
}

#[test]
fn what_is_left_in_a_seat_that_cannot_be_reached_any_more_is_named() {
    let (ns, proxy, person) = behind("copy-gone");
    let home = person.home();
    std::fs::create_dir(home.join("folder")).unwrap();
    noise(&home.join("folder/big"), 12);
    person.attach(&["app"]);
    let link = Throttle { rate: Some(1_000_000), latency: Duration::ZERO };
    proxy.set(Faults { up: link, ..Faults::default() });
    let mut command = person.podbench_command(&["cp", "folder", "app:/tmp/up", "--no-attach"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let part = eventually("the copy is under way", Duration::from_secs(20), || {
        let said = ns.exec("app", "podbench-1", &["sh", "-c", "ls -d /tmp/*.podbench-* 2>/dev/null"]);
        (said.code == 0).then(|| said.text())
    });
    proxy.set(Faults { dead: true, ..Faults::default() });
    proxy.kill_all();
    let out = child.wait_with_output().unwrap();
    let said = Ran {
        code: out.status.code().unwrap(),
        stdout: String::new(),
        stderr: String::from_utf8(out.stderr).unwrap(),
    };
    let said = said.expect_code(2);
    assert!(said.stderr.contains("the connection was cut"), "{}", said.stderr);
    assert!(said.stderr.contains(&format!("may be left in the seat as {part}")), "{}", said.stderr);
    let hints = hints(&said);
    assert!(hints[0].starts_with("podbench cp folder app:/tmp/up --no-attach"), "{hints:?}");
    // While nobody is there, that is said.
    let no = cp(&person, "folder", "app:/tmp/up");
    assert!(no.code == 2 && no.stderr.contains("try:   "), "{}", no.stderr);
    proxy.set(Faults::default());
    assert!(there(&ns, "/tmp").contains(".podbench-"));
    for hint in hints {
        paste(&person, &hint).expect_code(0);
    }
    let tmp = there(&ns, "/tmp");
    assert!(tmp.lines().any(|name| name == "up") && !tmp.contains(".podbench-"), "{tmp}");
}

/// exec-05 of the public cases: `kubectl exec -i` that is fed a large stdin, and ends with 0 though
/// nothing or half of it arrived.
#[test]
fn a_large_stdin_or_upload_that_arrives_empty_or_short_never_counts_as_success() {
    for websocket in ["true", "false"] {
        let (ns, proxy, mut person) = behind("exec-05");
        person.env.push(("KUBECTL_REMOTE_COMMAND_WEBSOCKETS".into(), websocket.into()));
        noise(&person.home().join("big"), 8);
        let want = digest(&person.home().join("big"));
        let bytes = std::fs::read(person.home().join("big")).unwrap();
        let alias = podbench_test_support::person::alias(&person.attach(&["app"]));
        let send = |by: &str| match by {
            "stdin" => run_with(
                person.podbench_command(&["ssh", "app", "--", "cat > /tmp/arrived"]),
                &bytes,
                Duration::from_secs(90),
            ),
            _ => cp(&person, "big", "app:/tmp/arrived"),
        };
        for by in ["stdin", "cp"] {
            let link = Throttle { rate: Some(8_000_000), latency: Duration::from_millis(20) };
            proxy.set(Faults { up: link, down: link, ..Faults::default() });
            fresh(&person, &proxy, &alias);
            send(by).expect_code(0);
            assert_eq!(digest_there(&ns, "/tmp/arrived"), want, "{websocket} {by}");
            // At the login, in the middle, and before the last byte.
            for after in [3_500, 3_000_000, 8_000_000] {
                ns.exec("app", "podbench-1", &["rm", "-f", "/tmp/arrived"]).expect_code(0);
                fresh(&person, &proxy, &alias);
                proxy.set(Faults { up: link, down: link, ..cut(Way::Up, after, 1) });
                let before = proxy.traffic().cuts;
                let said = send(by);
                assert_eq!(proxy.traffic().cuts, before + 1, "{websocket} {by} {after}: nothing was cut");
                let arrived = ns.exec("app", "podbench-1", &["test", "-e", "/tmp/arrived"]).code == 0;
                // The measurement that goes before is asked for again, so that an early cut is survived.
                let whole = arrived && digest_there(&ns, "/tmp/arrived") == want;
                assert_eq!(said.code == 0, whole, "{websocket} {by} {after}: {said:?}");
                assert!(after < 1_000_000 || said.code != 0, "{websocket} {by} {after}: {said:?}");
            }
        }
    }
}

#[test]
fn what_is_no_file_and_no_folder_is_named_and_the_rest_is_counted_as_it_was_copied() {
    let (ns, person) = world("copy-links");
    let home = person.home();
    std::fs::create_dir_all(home.join("tree/below")).unwrap();
    std::fs::write(home.join("tree/file"), "four").unwrap();
    std::fs::write(home.join("tree/below/file"), "sixsix").unwrap();
    let make = "cd \"$1\" && ln -s file to-file && ln -s below to-folder && ln -s nowhere dangling && ln -s loop loop \
                && ln -s .. below/up && mkfifo fifo";
    let mut sh = Command::new("sh");
    sh.args(["-c", make, "sh"]).arg(home.join("tree"));
    run(sh).expect_code(0);
    let _socket = std::os::unix::net::UnixListener::bind(home.join("tree/socket")).unwrap();
    let counted = |from: &str, to: &str| {
        let said = person.podbench(&["cp", from, to, "-o", "json"]).expect_code(0);
        let value = said.json();
        let mut skipped: Vec<String> = value["skipped"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p.as_str().unwrap().split("tree/").last().unwrap().to_owned())
            .collect();
        skipped.sort();
        assert_eq!(said.stderr.contains("warning: "), !skipped.is_empty(), "{}", said.stderr);
        (number(&value, "/files"), number(&value, "/bytes"), skipped.join(" "))
    };
    let left_out = "below/up dangling fifo loop socket to-file to-folder".to_owned();
    assert_eq!(counted("tree", "app:/tmp/"), (2, 10, left_out.clone()));
    // Merged into what is there: what was there isn't counted.
    ns.exec("app", "podbench-1", &["sh", "-c", "cd /tmp/tree && echo more > more && chmod 700 below"])
        .expect_code(0);
    std::fs::create_dir(home.join("tree/new")).unwrap();
    std::fs::set_permissions(home.join("tree/new"), PermissionsExt::from_mode(0o750)).unwrap();
    std::fs::write(home.join("tree/file"), "fives").unwrap();
    assert_eq!(counted("tree", "app:/tmp/"), (2, 11, left_out));
    let seen =
        ns.exec("app", "podbench-1", &["sh", "-c", "cd /tmp/tree && cat file more && stat -c %a new below"]);
    assert_eq!(seen.text(), "fivesmore\n750\n755");
    assert!(!there(&ns, "/tmp").contains(".podbench-"), "{}", there(&ns, "/tmp"));
    // A link that is named itself is what it leads to.
    assert_eq!(counted("tree/to-file", "app:/tmp/"), (1, 5, String::new()));
    assert_eq!(counted("tree/to-folder", "app:/tmp/"), (1, 6, "to-folder/up".into()));

    // The other way.
    ns.exec("app", "podbench-1", &["sh", "-c", &make.replace("$1", "/tmp/tree")]).expect_code(0);
    let left_out = "below/up dangling fifo loop to-file to-folder".to_owned();
    assert_eq!(counted("app:/tmp/tree", "back"), (3, 16, left_out.clone()));
    std::fs::create_dir_all(home.join("into/tree")).unwrap();
    std::fs::write(home.join("into/tree/mine"), "mine").unwrap();
    assert_eq!(counted("app:/tmp/tree", "into"), (3, 16, left_out));
    assert_eq!(std::fs::read_to_string(home.join("into/tree/mine")).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(home.join("into/tree/more")).unwrap(), "more\n");
    assert_eq!(counted("app:/tmp/tree/to-file", "one"), (1, 5, String::new()));
    // One file of a folder that can't be read: the folder isn't whole, so it isn't there.
    ns.exec("app", "podbench-1", &["chmod", "000", "/tmp/tree/more"]).expect_code(0);
    let said = cp(&person, "app:/tmp/tree", "torn").expect_code(2);
    assert!(
        said.stderr.contains("tree/more") && said.stderr.contains("Permission denied"),
        "{}",
        said.stderr
    );
    assert!(!home.join("torn").exists());
    nothing_left(home);
}

/// A disk of one megabyte.
struct Small(PathBuf);

impl Small {
    fn at(folder: PathBuf) -> Self {
        std::fs::create_dir(&folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&folder);
        run(mount).expect_code(0);
        Self(folder)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_local_disk_that_is_full_is_exit_1_and_nothing_is_left_on_it() {
    let (ns, person) = world("copy-full");
    person.attach(&["app"]);
    let script = "mkdir /tmp/folder; head -c 4000000 /dev/urandom > /tmp/folder/big";
    ns.exec("app", "podbench-1", &["sh", "-c", script]).expect_code(0);
    let small = Small::at(person.home().join("small"));
    for from in ["app:/tmp/folder/big", "app:/tmp/folder"] {
        let said = person.podbench(&["cp", from, "small/", "-o", "json"]).expect_code(1);
        assert_eq!(text(&said.json(), "/kind"), "disk");
        assert!(text(&said.json(), "/message").contains("No space left on device"), "{}", said.stdout);
        assert_eq!(std::fs::read_dir(&small.0).unwrap().count(), 0);
        paste(&person, text(&said.json(), "/hints/0")).expect_code(0);
    }
}

#[test]
fn modes_are_kept_both_ways_and_the_asked_container_is_the_one_beside_which_the_seat_is() {
    let ns = Namespace::scratch("copy-beside");
    let mut two = pod("app", 1234, 2000);
    two["spec"]["containers"].as_array_mut().unwrap().push(container("other", 8081));
    ns.pods(&[two]);
    let person = person(&ns);
    let home = person.home();
    std::fs::create_dir_all(home.join("folder")).unwrap();
    for (name, mode) in [("folder/run", 0o750), ("folder/secret", 0o600), ("folder", 0o700)] {
        if name != "folder" {
            std::fs::write(home.join(name), name).unwrap();
        }
        std::fs::set_permissions(home.join(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    let no = person.podbench(&["cp", "folder", "app:/tmp/", "-c", "nosuch"]).expect_code(2);
    // What it says to try is the same copy.
    paste(&person, &hints(&no)[0]).expect_code(0);
    for spelling in ["-c", "--target", "--container"] {
        person.podbench(&["cp", "folder", "app:/tmp/", spelling, "other", "--no-prompt"]).expect_code(0);
    }
    let beside: Vec<String> = ns.get("pod", "app")["spec"]["ephemeralContainers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| text(c, "/targetContainerName").to_owned())
        .collect();
    assert_eq!(beside, ["app", "other"]);
    let modes = "stat -c %a /tmp/folder /tmp/folder/run /tmp/folder/secret";
    for seat in ["podbench-1", "podbench-2"] {
        assert_eq!(ns.exec("app", seat, &["sh", "-c", modes]).text(), "700\n750\n600");
    }
    ns.exec("app", "podbench-2", &["sh", "-c", "echo two > /tmp/folder/run"]).expect_code(0);
    person.podbench(&["cp", "app:/tmp/folder", "back", "-c", "other"]).expect_code(0);
    for (name, want) in [("back", 0o700), ("back/run", 0o750), ("back/secret", 0o600)] {
        assert_eq!(home.join(name).metadata().unwrap().permissions().mode() & 0o777, want, "{name}");
    }
    assert_eq!(std::fs::read_to_string(home.join("back/run")).unwrap(), "two\n");
    // Over the file that is there.
    person.podbench(&["cp", "app:/tmp/folder/secret", "back/run", "-c", "other"]).expect_code(0);
    assert_eq!(std::fs::read_to_string(home.join("back/run")).unwrap(), "folder/secret");
}

#[test]
fn whoever_lacks_rights_is_told_all_that_the_copy_needs_and_none_that_it_does_not() {
    let ns = Namespace::scratch("copy-rights");
    ns.pods(&[pod("app", 1234, 2000)]);
    let rules = "- {apiGroups: [\"\"], resources: [configmaps], verbs: [get]}";
    let person = Person::new(PODBENCH, &ns.kubeconfig_with("nobody", rules), &ns.cluster.image);
    std::fs::write(person.home().join("file"), "x").unwrap();
    let said = cp(&person, "file", "app:").expect_code(2);
    let all = "missing too, for the same: create pods/exec, update pods/ephemeralcontainers";
    let told = said.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains(all), "{told}");
    for verb in [vec!["cp", "file", "app:", "--no-attach"], vec!["ssh", "app", "--no-attach"]] {
        let said = person.podbench(&verb).expect_code(2);
        assert!(said.stderr.contains("create pods/exec"), "{}", said.stderr);
        assert!(!said.stderr.contains("ephemeralcontainers"), "{}", said.stderr);
    }
}
