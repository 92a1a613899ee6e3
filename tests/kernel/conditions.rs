//! The conditions: a file each, which says how it is made and, from that alone, what is expected.

use std::path::Path;

use podbench_test_support::cluster::root;
use serde::Deserialize;
use serde_json::Value;

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    /// Its folder and file.
    pub(crate) name: String,
    /// How it is made, in words.
    pub(crate) made: String,
    /// The boot that it is made in.
    pub(crate) boot: Boot,
    /// Yama's `ptrace_scope`, which can't be lowered again from 3.
    pub(crate) yama: u64,
    /// What is expected.
    pub(crate) expect: Expect,
    /// What the guest makes it from.
    pub(crate) recipe: Value,
}

/// The boots: AppArmor and SELinux exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Boot {
    /// The kernel's own list of security modules: Landlock, Yama and AppArmor among them.
    Apparmor,
    /// SELinux enforces, and there is no Yama.
    Selinux,
}

/// What is expected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// What the kernel answers a debugger.
    pub(crate) attach: String,
    /// The agent's verdict.
    pub(crate) verdict: String,
    /// The blockers, the one that answers first; with a `?` behind one that may bite and can't be measured.
    pub(crate) blockers: Vec<String>,
    /// What the kernel answers about a child of the prober's own.
    pub(crate) child: String,
}

/// All of them in the order of one boot: Yama only ever rises.
pub(crate) fn all() -> Vec<Condition> {
    let folder = root().join("tests/kernel/conditions");
    let mut found = Vec::new();
    for group in std::fs::read_dir(&folder).unwrap().flatten() {
        for file in std::fs::read_dir(group.path()).unwrap().flatten() {
            found.push(read(&folder, &file.path()));
        }
    }
    found.sort_by(|a, b| (a.yama, &a.name).cmp(&(b.yama, &b.name)));
    found
}

fn read(folder: &Path, file: &Path) -> Condition {
    let name = file.strip_prefix(folder).unwrap().with_extension("").display().to_string();
    let mut value: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap())
        .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let object = value.as_object_mut().unwrap();
    let mut take = |key: &str| object.remove(key);
    let made = take("made").unwrap().as_str().unwrap().to_owned();
    let boot = take("boot").map_or(Boot::Apparmor, |b| serde_json::from_value(b).unwrap());
    let expect = serde_json::from_value(take("expect").unwrap()).unwrap();
    object.insert("name".to_owned(), name.clone().into());
    let yama = object.get("yama").and_then(Value::as_u64).unwrap_or(0);
    Condition { name, made, boot, yama, expect, recipe: value }
}
