use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::settings::Settings;

fn owner(context: &str, namespace: &str, pod: &str, uid: &str, seat: &str) -> Owner {
    Owner {
        context: context.into(),
        kubeconfig: "/home/u/.kube/config".into(),
        namespace: namespace.into(),
        pod: pod.into(),
        pod_uid: uid.into(),
        seat: seat.into(),
    }
}

struct Rig {
    _temp: tempfile::TempDir,
    layout: Layout,
}

impl Rig {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let settings = Settings::bare(temp.path());
        let layout = Layout::new(&settings);
        drop(layout.open(&settings).unwrap());
        Self { _temp: temp, layout }
    }

    fn land(&self, owner: &Owner, wanted: Option<&str>) -> Result<String, Failure> {
        let alias = choose(&self.layout, owner, wanted)?;
        files::replace(&self.layout.stanza(&alias), &format!("# x\n{}\nHost {alias}\n", owner.line()))
            .unwrap();
        Ok(alias)
    }
}

#[test]
fn two_splits_of_one_text_never_share_a_file() {
    let rig = Rig::new();
    let one = rig.land(&owner("c", "a-b", "c", "u1", "podbench-1"), None).unwrap();
    let two = rig.land(&owner("c", "a", "b-c", "u2", "podbench-1"), None).unwrap();
    assert_eq!(one, "podbench-a-b-c-1");
    assert!(two.starts_with("podbench-a-b-c-1-"), "{two}");
    // Each again, and neither moves.
    assert_eq!(rig.land(&owner("c", "a-b", "c", "u1", "podbench-1"), None).unwrap(), one);
    assert_eq!(rig.land(&owner("c", "a", "b-c", "u2", "podbench-1"), None).unwrap(), two);
}

#[test]
fn another_context_or_cluster_gets_another_alias_and_keeps_it() {
    let rig = Rig::new();
    let a = owner("a", "demo", "api", "u1", "podbench-1");
    let b = owner("b", "demo", "api", "u2", "podbench-1");
    // The same context name in another kubeconfig: another cluster, unless it is the same pod.
    let c = Owner { kubeconfig: "/elsewhere".into(), pod_uid: "u3".into(), ..a.clone() };
    let aliases: Vec<String> = [&a, &b, &c].map(|o| rig.land(o, None).unwrap()).to_vec();
    assert_eq!(aliases.iter().collect::<BTreeSet<_>>().len(), 3, "{aliases:?}");
    std::fs::remove_file(rig.layout.stanza(&aliases[0])).unwrap();
    assert_eq!(rig.land(&b, None).unwrap(), aliases[1], "a neighbour's end moves nobody");
    let same_pod = Owner { kubeconfig: "/elsewhere:/more".into(), ..b.clone() };
    assert_eq!(rig.land(&same_pod, None).unwrap(), aliases[1]);
}

#[test]
fn a_pod_made_anew_takes_its_alias_over() {
    let rig = Rig::new();
    let old = rig.land(&owner("c", "demo", "db-0", "u1", "podbench-1"), None).unwrap();
    assert_eq!(rig.land(&owner("c", "demo", "db-0", "u2", "podbench-1"), None).unwrap(), old);
    assert_eq!(
        rig.land(&owner("c", "demo", "db-0", "u2", "podbench-2"), None).unwrap(),
        "podbench-demo-db-0-2"
    );
}

#[test]
fn a_file_that_podbench_did_not_write_is_never_written_over() {
    let rig = Rig::new();
    let mine = owner("c", "demo", "api", "u1", "podbench-1");
    std::fs::write(rig.layout.stanza("podbench-demo-api-1"), "Host x\n").unwrap();
    let alias = rig.land(&mine, None).unwrap();
    assert_ne!(alias, "podbench-demo-api-1");
    std::os::unix::fs::symlink("/etc/passwd", rig.layout.stanza("api")).unwrap();
    let failure = rig.land(&mine, Some("api")).unwrap_err();
    assert!(failure.message.contains("didn't write"), "{failure}");
}

#[test]
fn a_chosen_alias_moves_with_its_pod_and_is_refused_to_another() {
    let rig = Rig::new();
    rig.land(&owner("c", "demo", "api", "u1", "podbench-1"), Some("api")).unwrap();
    rig.land(&owner("c", "demo", "api", "u1", "podbench-2"), Some("api")).unwrap();
    rig.land(&owner("c", "demo", "api", "u2", "podbench-1"), Some("api")).unwrap();
    let failure = rig.land(&owner("\u{1b}", "demo", "api", "u1", "podbench-1"), Some("api")).unwrap_err();
    assert!(failure.message.contains("pod demo/api of context c"), "{failure}");
    assert_eq!(failure.kind.exit(), 2);
}

#[test]
fn an_owner_survives_its_comment_line_whatever_its_context_is_called() {
    let odd = owner("a\"b\\c # '%'\u{1b}ä", "n", "p", "u", "podbench-1");
    assert_eq!(odd.line().lines().count(), 1);
    assert_eq!(Owner::of(&format!("# first\n{}\nHost x\n", odd.line())), Some(odd));
    assert_eq!(Owner::of("# podbench: {}\n"), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_alias_is_one_and_no_two_owners_have_the_same(
        pods in prop::collection::btree_set(("[ab]{1,2}", "[a-c]-[ab]{1,3}|[a-z]{1,200}", 1..3u32), 1..12),
    ) {
        let rig = Rig::new();
        let mut seen = BTreeSet::new();
        for (context, pod, n) in &pods {
            for namespace in ["a", "a-b", &"n".repeat(63)] {
                let owner = owner(context, namespace, pod, &format!("{context}{namespace}{pod}"), &format!("podbench-{n}"));
                let alias = rig.land(&owner, None).unwrap();
                prop_assert!(is_alias(&alias), "{}", alias);
                prop_assert!(seen.insert(alias.clone()), "{}", alias);
                prop_assert_eq!(rig.land(&owner, None).unwrap(), alias);
            }
        }
    }
}
