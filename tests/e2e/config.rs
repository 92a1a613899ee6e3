//! `config.toml`, as a person would notice it.

use podbench_test_support::namespace::Namespace;

use crate::world::{person, text, world};

#[test]
fn the_files_defaults_count_and_flags_and_environment_count_more() {
    let (ns, mut person) = world("config", &["odd-ids"]);
    let image = person.variable("PODBENCH_IMAGE").unwrap();
    person.env.retain(|(name, _)| name != "PODBENCH_IMAGE");
    let folder = person.home().join(".podbench");
    std::fs::create_dir_all(&folder).unwrap();
    // The kubeconfig's current context is called e2e.
    let config = format!(
        "[defaults]\nimage = \"registry.invalid/none:1\"\n\n[context.e2e]\nimage = \"{image}\"\nmax-rung = \"seat\"\n\n\
         [context.other]\nmax-rung = \"full\"\n"
    );
    std::fs::write(folder.join("config.toml"), config).unwrap();
    let ran = person.podbench(&["attach", "odd-ids", "-o", "json", "-v"]).expect_code(0);
    let report = ran.json();
    assert_eq!(text(&report, "/rung/name"), "seat", "{report:#}");
    assert_eq!(text(&report, "/seat/image"), image);
    for told in ["config.toml: image = ", "max-rung = \"seat\", from [context.\"e2e\"]"] {
        assert!(ran.stderr.contains(told), "-v doesn't tell `{told}`:\n{}", ran.stderr);
    }
    assert!(
        !person.podbench(&["attach", "odd-ids"]).expect_code(0).stderr.contains("config.toml"),
        "without -v"
    );

    let report = person.attach(&["odd-ids", "--max-rung", "degraded"]);
    assert_eq!(text(&report, "/rung/name"), "degraded", "a flag counts more: {report:#}");
    person.env.push(("PODBENCH_IMAGE".into(), "registry.invalid/other:2".into()));
    let report =
        person.podbench(&["attach", "odd-ids", "--dry-run", "--new", "-o", "json"]).expect_code(0).json();
    assert_eq!(text(&report, "/seat/image"), "registry.invalid/other:2", "the environment counts more");
    assert_eq!(ns.seats("odd-ids").len(), 2);
}

#[test]
fn a_mesh_that_only_we_have_is_no_target_where_the_file_names_it() {
    let ns = Namespace::scratch("config-mesh");
    let containers = ["our-mesh", "shop"].map(|name| {
        format!("  - {{name: {name}, image: 'podbench.test/nonroot:1', imagePullPolicy: Never, args: [-port, '{}']}}\n", 8000 + name.len())
    });
    ns.cluster.apply(&format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: meshed, namespace: {}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n{}",
        ns.name,
        containers.concat()
    ));
    ns.kubectl(&["wait", "--for=condition=Ready", "pod/meshed", "--timeout=60s"]).expect_code(0);
    let person = person(&ns);
    let report = person.attach(&["meshed", "--dry-run"]);
    assert_eq!(text(&report, "/target/container"), "our-mesh", "nobody knows better: {report:#}");
    let folder = person.home().join(".podbench");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "[defaults]\nsidecars = [\"our-mesh\"]\n").unwrap();
    let report = person.attach(&["meshed"]);
    assert_eq!(text(&report, "/target/container"), "shop", "{report:#}");
    assert!(text(&report, "/target/why").contains("our-mesh"), "{report:#}");
    // Every verb takes the same target.
    person.podbench(&["ssh-config", "meshed"]).expect_code(0);
}

#[test]
fn a_mistake_in_the_file_ends_the_run_before_the_cluster_is_touched() {
    let ns = Namespace::scratch("config-wrong");
    let mut person = person(&ns);
    let transcript = person.home().join("transcript");
    person.env.push(("PODBENCH_TRANSCRIPT".into(), transcript.display().to_string()));
    let folder = person.home().join(".podbench");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), "[defaults]\n# a comment\nmax-rungs = \"full\"\n").unwrap();
    let said = person.podbench(&["attach", "whatever"]).expect_code(2);
    for word in ["config.toml, line 3", "max-rungs", "`max-rung`", "try:"] {
        assert!(said.stderr.contains(word), "`{word}` is missing in:\n{}", said.stderr);
    }
    assert!(!transcript.exists(), "the cluster was asked");
    let object = person.podbench(&["attach", "whatever", "-o", "json"]).expect_code(2).json();
    assert_eq!(text(&object, "/schema"), "podbench/error/v1");
    // A shell that starts with a completion script starts all the same.
    person.podbench(&["completion", "bash"]).expect_code(0);
}
