use std::os::unix::fs::PermissionsExt as _;

use super::*;

fn args(words: &[&str]) -> ClusterArgs {
    let words = ["podbench"].iter().chain(words).chain(["version"].iter()).map(OsString::from);
    crate::cli::parse(words).unwrap().cluster
}

fn program(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn colour_is_for_terminals_unless_somebody_says_otherwise() {
    assert!(decide_color(true, false, false, false));
    assert!(!decide_color(false, false, false, false), "a pipe");
    assert!(!decide_color(true, false, false, true), "TERM=dumb");
    assert!(decide_color(false, false, true, true), "CLICOLOR_FORCE");
    assert!(!decide_color(true, true, true, false), "NO_COLOR wins");
}

#[test]
fn a_path_that_ssh_would_read_otherwise_is_refused_with_its_source() {
    for bad in ["/home/${USER}", "/home/a\nb", "/home/a\u{1b}[31m", "/home/a\rb"] {
        let failure = plain(PathBuf::from(bad), "HOME").unwrap_err();
        assert!(failure.message.contains("HOME") && !failure.causes.is_empty(), "{failure}");
        assert!(!failure.to_string().contains('\u{1b}'));
    }
    for good in ["/home/$USER", "/home/ä b%c", "/home/{x}"] {
        assert!(plain(PathBuf::from(good), "HOME").is_ok(), "{good}");
    }
}

#[test]
fn kubectl_is_found_on_path_and_absolute() {
    let dir = tempfile::tempdir().unwrap();
    let path = program(dir.path(), "kubectl");
    let mut settings = Settings::bare(dir.path());
    settings.path = dir.path().as_os_str().to_owned();
    assert_eq!(Cluster::resolve(&args(&[]), &settings).unwrap().kubectl, path);

    let other = program(dir.path(), "other");
    assert_eq!(Cluster::resolve(&args(&["--kubectl", "./other"]), &settings).unwrap().kubectl, other);
    settings.kubectl = Some("other".into());
    assert_eq!(Cluster::resolve(&args(&[]), &settings).unwrap().kubectl, other);
}

#[test]
fn a_kubectl_that_is_nowhere_is_named_with_the_way_to_name_another() {
    let mut settings = Settings::bare("/nonexistent");
    settings.path = OsString::from("/nonexistent/bin");
    let failure = Cluster::resolve(&args(&[]), &settings).unwrap_err();
    let said = failure.to_string();
    assert!(
        said.contains("kubectl is not on PATH")
            && said.contains("--kubectl")
            && said.contains("PODBENCH_KUBECTL")
    );
    assert_eq!(failure.kind.exit(), 2);
    settings.kubectl = Some("/opt/none".into());
    let said = Cluster::resolve(&args(&[]), &settings).unwrap_err().to_string();
    assert!(said.contains("PODBENCH_KUBECTL names `/opt/none`"), "{said}");
}

#[test]
fn a_relative_kubeconfig_is_taken_from_where_the_user_stands() {
    let mut settings = Settings::bare("/home/u");
    settings.path = OsString::from("/bin");
    settings.cwd = PathBuf::from("/work");
    let cluster =
        Cluster::resolve(&args(&["--kubectl", "/bin/sh", "--kubeconfig", "k/c"]), &settings).unwrap();
    assert_eq!(cluster.kubeconfig, Some(PathBuf::from("/work/k/c")));
}
