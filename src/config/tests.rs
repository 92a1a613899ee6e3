use std::os::unix::fs::PermissionsExt as _;

use super::*;

const WHOLE: &str = r#"
[defaults]
image = "registry.example/seat:1"
sidecars = ["our-mesh"]
kubectl = "kubectl-1.35"

[context."prod/eu west"]
image = "mirror.example/seat:1"
max-rung = "degraded"
sidecars = ["prod-agent"]
kubectl = "/opt/kubectl"
"#;

fn parse(text: &str) -> Result<Config, Failure> {
    Config::parse("/home/u/.podbench/config.toml".into(), text)
}

#[test]
fn a_contexts_own_table_counts_more_than_the_defaults() {
    let config = parse(WHOLE).unwrap();
    let plain = config.of(Some("elsewhere"));
    assert_eq!(plain, config.of(None));
    assert_eq!(plain.image.as_deref(), Some("registry.example/seat:1"));
    assert_eq!((plain.max_rung, plain.sidecars), (None, vec!["our-mesh".to_owned()]));
    let prod = config.of(Some("prod/eu west"));
    assert_eq!(prod.image.as_deref(), Some("mirror.example/seat:1"));
    assert_eq!((prod.max_rung, prod.kubectl), (Some(Rung::Degraded), Some("/opt/kubectl".into())));
    assert_eq!(prod.sidecars, ["our-mesh", "prod-agent"], "both lists count");
}

#[test]
fn each_default_is_told_with_the_table_that_it_is_from() {
    let lines = parse(WHOLE).unwrap().lines("prod/eu west").join("\n");
    for part in [
        r#"image = "mirror.example/seat:1", from [context."prod/eu west"]"#,
        r#"max-rung = "degraded", from [context."prod/eu west"]"#,
        r#"sidecars = ["our-mesh"], from [defaults]"#,
        r#"sidecars = ["prod-agent"], from [context."prod/eu west"]"#,
    ] {
        assert!(lines.contains(part), "{part} is missing in:\n{lines}");
    }
}

#[test]
fn what_is_wrong_is_refused_with_its_line_and_what_would_be_right() {
    for (text, line, words) in [
        ("[defaults]\nimgae = 'x'", 2, "unknown field `imgae`, expected one of `image`"),
        ("[default]\nimage = 'x'", 1, "unknown field `default`, expected `defaults`"),
        ("[context.a]\n\nmax-rung = 'root'", 3, "full, degraded, seat"),
        ("[defaults]\nimage = 7", 2, "invalid type"),
        ("[defaults]\nimage = '-v'", 2, "doesn't begin with -"),
        ("[defaults]\nkubectl = './kubectl'", 2, "absolute path"),
        ("[defaults]\nsidecars = ['ok', 'Not A Name']", 2, "no container is called that"),
        ("[defaults\n", 1, ""),
        ("image = 'x'", 1, "unknown field `image`"),
    ] {
        let failure = parse(text).unwrap_err();
        assert_eq!(failure.kind, Kind::Input, "{text}");
        assert!(failure.message.contains(&format!("config.toml, line {line}: ")), "{text}: {failure}");
        assert!(failure.message.contains(words), "{text}: {failure}");
    }
}

#[test]
fn a_file_that_others_may_write_names_no_program_of_ours() {
    let home = tempfile::tempdir().unwrap();
    assert!(Config::read(home.path()).unwrap().of(None).image.is_none(), "no file is no error");
    let file = home.path().join("config.toml");
    std::fs::write(&file, WHOLE).unwrap();
    for (mode, fine) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let read = Config::read(home.path());
        assert_eq!(read.is_ok(), fine, "{mode:o}");
        if let Err(failure) = read {
            assert!(failure.hints[0].starts_with("chmod go-w "), "{failure}");
        }
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(Config::read(home.path()).is_err());
}

#[test]
fn a_file_of_somebody_elses_and_one_that_is_no_text_are_told_apart_with_what_helps() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, b"[defaults]\nimage = \"a\xff\"\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let failure = Config::read(folder.path()).unwrap_err();
    assert!(failure.message.contains("config.toml, line 2: it isn't text"), "{failure}");
    assert_eq!(failure.kind, Kind::Input);
    // Only root can give a file away.
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&file, Some(4711), None).unwrap();
        let failure = Config::read(folder.path()).unwrap_err();
        assert!(failure.message.contains("belongs to uid 4711"), "{failure}");
        assert!(failure.hints[0].starts_with("sudo chown 0 "), "{failure}");
    }
}

#[test]
fn a_kubectl_that_is_not_there_is_told_with_the_file_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = crate::settings::Settings::bare(folder.path());
    settings.config = parse("[defaults]\nkubectl = \"/no/such/kubectl\"\n").unwrap();
    let cluster = crate::settings::Cluster::resolve(&crate::cli::ClusterArgs::default(), &settings);
    let failure = cluster.unwrap_err();
    assert!(failure.causes[0].contains("/home/u/.podbench/config.toml"), "{failure}");
    assert!(failure.hints[0].ends_with(" /home/u/.podbench/config.toml"), "{failure}");
}
