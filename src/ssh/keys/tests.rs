use std::path::Path;

use super::*;
use crate::ssh::tests::KEY;

fn home(files: &[(&str, &str)]) -> (tempfile::TempDir, Settings) {
    let temp = tempfile::tempdir().unwrap();
    std::fs::create_dir(temp.path().join(".ssh")).unwrap();
    for (name, text) in files {
        std::fs::write(temp.path().join(".ssh").join(name), text).unwrap();
    }
    let settings = Settings::bare(temp.path());
    (temp, settings)
}

fn file(settings: &Settings, wanted: Option<&str>) -> String {
    let identity = find(settings, wanted.map(Path::new)).unwrap();
    assert_eq!(identity.public.to_string(), KEY);
    identity.file.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn no_key_is_an_input_error_with_the_command_that_makes_one() {
    let (_temp, settings) = home(&[]);
    let failure = find(&settings, None).unwrap_err();
    assert_eq!(failure.kind.exit(), 2);
    assert_eq!(failure.hints, ["ssh-keygen -t ed25519"]);
    assert!(failure.to_string().contains("id_ecdsa_sk"));
    let failure = find(&Settings::bare("/nonexistent"), None).unwrap_err();
    assert_eq!(failure.hints, ["ssh-keygen -t ed25519"]);
}

#[test]
fn the_first_key_with_a_public_half_is_taken() {
    let both = [
        ("id_rsa", "x"),
        ("id_rsa.pub", KEY),
        ("id_ecdsa_sk", "x"),
        ("id_ecdsa_sk.pub", KEY),
        ("id_ed25519", "x"),
    ];
    let (_temp, settings) = home(&both);
    assert_eq!(file(&settings, None), "id_ecdsa_sk");
}

#[test]
fn a_key_that_an_agent_holds_is_named_by_its_public_half() {
    let (_temp, settings) = home(&[("id_ed25519.pub", &format!("# my key\n\n{KEY}\r\n"))]);
    assert_eq!(file(&settings, None), "id_ed25519.pub");
}

#[test]
fn a_private_key_alone_gets_the_command_that_prints_its_public_half() {
    let (_temp, settings) = home(&[("id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\n")]);
    for wanted in [None, Some(".ssh/id_ed25519"), Some("~/.ssh/id_ed25519")] {
        let failure = find(&settings, wanted.map(Path::new)).unwrap_err();
        let hint = &failure.hints[0];
        assert!(hint.starts_with("ssh-keygen -y -f /") && hint.ends_with("/id_ed25519.pub"), "{failure}");
    }
}

#[test]
fn an_identity_may_be_either_half_or_a_public_key_of_any_name() {
    let (_temp, settings) = home(&[("work", "x"), ("work.pub", KEY), ("agent", KEY), ("lone.pub", KEY)]);
    assert_eq!(file(&settings, Some(".ssh/work")), "work");
    assert_eq!(file(&settings, Some("~/.ssh/work.pub")), "work");
    assert_eq!(file(&settings, Some(".ssh/agent")), "agent");
    assert_eq!(file(&settings, Some(".ssh/lone")), "lone.pub");
    let failure = find(&settings, Some(Path::new(".ssh/none"))).unwrap_err();
    assert!(failure.message.contains("there is no key"), "{failure}");
    let failure = find(&settings, Some(Path::new(".ssh"))).unwrap_err();
    assert!(failure.message.ends_with(".ssh is a folder") && failure.hints.is_empty(), "{failure}");
}

#[test]
fn what_is_no_key_is_said_to_be_none_and_never_skipped() {
    for (text, word) in [
        ("hello", "type"),
        ("", "empty"),
        ("ssh-ed25519 AAAA", "data"),
        ("\u{1b}[31m", "printable"),
        ("ssh-dss AAAA", "ssh-dss"),
    ] {
        let (_temp, settings) = home(&[("id_ed25519.pub", text), ("id_rsa.pub", KEY)]);
        let failure = find(&settings, None).unwrap_err();
        assert!(failure.message.ends_with("id_ed25519.pub is not a public key"), "{failure}");
        assert!(failure.causes[0].contains(word) && !failure.to_string().contains('\u{1b}'), "{failure}");
    }
    let (temp, settings) = home(&[]);
    std::fs::create_dir(temp.path().join(".ssh/id_ed25519.pub")).unwrap();
    assert!(find(&settings, None).unwrap_err().message.contains("can't be read"));
}

#[test]
fn a_path_that_ssh_would_expand_is_refused() {
    let (temp, settings) = home(&[("${HOME}", "x"), ("${HOME}.pub", KEY)]);
    let failure = find(&settings, Some(&temp.path().join(".ssh/${HOME}"))).unwrap_err();
    assert!(failure.message.contains("the identity"), "{failure}");
}
