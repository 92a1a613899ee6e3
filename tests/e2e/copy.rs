//! `podbench cp`: what arrives is whole, or isn't there.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::Person;
use podbench_test_support::pods::pod;
use podbench_test_support::process::{Ran, eventually, run};

use crate::world::{person, text};

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
    for (from, to, words) in [
        ("app:/tmp/nosuch", "got", "nosuch"),
        ("file", "app:/proc/version", "/proc/version"),
        ("file", "app:/nosuch/folder/file", "No such file"),
        ("nosuch", "app:/tmp/", "nosuch"),
        ("file", "other", "neither side is in a pod"),
        ("app:/a", "app:/b", "both sides are in a pod"),
    ] {
        let said = cp(&person, from, to).expect_code(2);
        assert!(said.stderr.contains(words), "{from} {to}: `{words}` is missing in:\n{}", said.stderr);
    }
    cp(&person, "app:/etc/hostname", "nofolder/here").expect_code(1);
    assert!(!home.join("got").exists() && !home.join("other").exists());
    let left = std::fs::read_dir(home)
        .unwrap()
        .flatten()
        .any(|e| e.file_name().to_string_lossy().contains("podbench-cp"));
    assert!(!left, "a temporary is left");
    person.podbench(&["cp", "-n", "elsewhere", "file", &format!("{}/app:/tmp/", ns.name)]).expect_code(2);
}

#[test]
fn ctrl_c_and_a_connection_that_is_cut_leave_no_half_file() {
    let (ns, person) = world("copy-cut");
    let home = person.home();
    noise(&home.join("big"), 200);
    person.attach(&["app"]);
    let half = |signal: &str, from: &str, to: &str| {
        let mut child = person.podbench_command(&["cp", from, to]).spawn().unwrap();
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
    let there = ns.exec("app", "podbench-1", &["sh", "-c", "ls /tmp"]).text();
    assert!(!there.contains("up"), "a half file, or a part of one, is left: {there}");
    cp(&person, "big", "app:/tmp/whole").expect_code(0);
    assert_eq!(half("-INT", "app:/tmp/whole", "down"), Some(130));
    assert!(!home.join("down").exists());
    cp(&person, "app:/tmp/whole", "down").expect_code(0);
    assert_eq!(digest(&home.join("big")), digest(&home.join("down")));
}
