use super::*;

const LINE: &str = "Include ~/.podbench/config.d/*.conf";

fn state(text: &str) -> State {
    let settings = Settings::bare("/home/u");
    look(text, &settings, &Layout::new(&settings))
}

#[test]
fn an_include_at_the_top_is_found_in_any_spelling() {
    for text in [
        LINE,
        "# mine\n\ninclude ~/.podbench/config.d/*.conf\nHost *\n User x\n",
        "Include=/home/u/.podbench/config.d/*.conf",
        "Include = \"/home/u/.podbench/config.d/*.conf\"",
        "Include ~/.orbstack/ssh/config ~/.podbench/config.d/*",
        "Include ~/.colima/ssh_config\nInclude ~/.podbench/config.d/*.conf # podbench",
        "IgnoreUnknown UseKeychain\nUseKeychain yes\nAddKeysToAgent yes\nInclude ~/.podbench/config.d/*.conf",
        "Include ../.podbench/config.d/*.conf\n",
    ] {
        let wanted = if text.contains("../") { State::Missing } else { State::First };
        assert_eq!(state(text), wanted, "{text}");
    }
}

#[test]
fn an_include_under_a_host_or_an_option_is_shadowed() {
    for (text, by) in [
        (format!("Host *\n  User x\n{LINE}\n"), "Host *"),
        (format!("Match all\n{LINE}\n"), "Match all"),
        (format!("ForwardAgent yes\n{LINE}\n"), "ForwardAgent yes"),
    ] {
        assert_eq!(state(&text), State::Shadowed(by.into()), "{text}");
    }
    assert_eq!(state(""), State::Missing);
    assert_eq!(state("# Include ~/.podbench/config.d/*.conf"), State::Missing);
    assert_eq!(state("Include ~/.other/*.conf"), State::Missing);
}

#[test]
fn what_to_do_is_one_line_that_can_be_copied() {
    let temp = tempfile::tempdir().unwrap();
    let settings = Settings::bare(temp.path());
    let layout = Layout::new(&settings);
    assert_eq!(missing(&settings, &layout), Some(Missing { line: LINE.into(), shadowed: None }));
    std::fs::create_dir(temp.path().join(".ssh")).unwrap();
    let config = temp.path().join(".ssh/config");
    std::fs::write(&config, format!("Host \u{1b}[31m*\n{LINE}\n")).unwrap();
    let said = missing(&settings, &layout).unwrap();
    assert_eq!(said.line, LINE);
    let warning = said.shadowed.unwrap();
    assert!(warning.contains("Host ") && warning.contains("to the top"), "{warning}");
    assert!(!warning.contains(char::is_control), "{warning}");
    std::fs::write(&config, LINE).unwrap();
    assert_eq!(missing(&settings, &layout), None);
}

#[test]
fn a_folder_elsewhere_is_included_by_its_own_path() {
    let mut settings = Settings::bare("/home/u");
    settings.config_dir = "/srv/a b/[x]".into();
    let layout = Layout::new(&settings);
    assert_eq!(line(&settings, &layout), r#"Include "/srv/a b/\\[x\\]/config.d/*.conf""#);
    assert_eq!(look(&line(&settings, &layout), &settings, &layout), State::First);
}

#[test]
fn what_every_host_is_given_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let settings = Settings::bare(temp.path());
    assert_eq!(given_away(&settings), None);
    std::fs::create_dir(temp.path().join(".ssh")).unwrap();
    for (text, named) in [
        ("SendEnv LANG LC_*\nHost work\n  SendEnv AWS_*\n", None),
        ("Host work\n  User x\nHost *\n  SendEnv AWS_* LANG\n", Some("SendEnv AWS_*")),
        (
            "sendenv=GITHUB_TOKEN\nRemoteForward 9000 localhost:9000",
            Some("SendEnv GITHUB_TOKEN, RemoteForward 9000 localhost:9000"),
        ),
        ("Match all\n SendEnv X\n", Some("SendEnv X")),
        ("Match host a\n SendEnv X\n RemoteForward 1 a:1\n", None),
    ] {
        std::fs::write(temp.path().join(".ssh/config"), text).unwrap();
        let said = given_away(&settings);
        assert_eq!(said.as_deref().and_then(|s| s.split_once(": ")).map(|(_, s)| s), named, "{text}");
    }
}
