//! Proof by a real ssh, which runs a fake kubectl that keeps its argv and its environment: `ssh -G`
//! prints a ProxyCommand unexpanded and proves nothing about it.
#![expect(clippy::disallowed_methods, reason = "the proof is a real ssh")]

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use podbench_contract::ids::SeatName;
use podbench_contract::keys::PublicKey;
use proptest::prelude::*;

use super::*;

pub(super) const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1p me@laptop";

pub(super) fn seat() -> SshSeat {
    SshSeat {
        context: "kind-a".into(),
        namespace: "demo".into(),
        pod: "api-7d9f".into(),
        pod_uid: "0b7f3c52-6f9c-4b43-9d1f-0d6e0b0c9a11".into(),
        seat: SeatName::parse("podbench-1").unwrap(),
        login: "podbench".into(),
        host_key: PublicKey::parse(KEY).unwrap(),
        sshd_config: "/run/podbench/1234/sshd_config".into(),
        alias: None,
    }
}

/// A user's machine in a temporary folder: a home of any name, a key, a kubectl that keeps what it
/// was started with.
struct Rig {
    _temp: tempfile::TempDir,
    settings: Settings,
    cluster: Cluster,
    identity: Identity,
}

impl Rig {
    fn new(home: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join(home);
        std::fs::create_dir_all(home.join(".ssh")).unwrap();
        let kubectl = home.join("kubectl");
        let script = "#!/bin/sh\nd=${0%/*}\nfor a in \"$@\"; do printf '%s\\0' \"$a\"; done > \"$d/argv\"\n\
                      env -0 > \"$d/env\"\nexit 1\n";
        std::fs::write(&kubectl, script).unwrap();
        std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(home.join(".ssh/id_ed25519.pub"), format!("{KEY}\n")).unwrap();
        let settings = Settings::bare(&home);
        let identity = keys::find(&settings, None).unwrap();
        let cluster = Cluster { kubectl, ..Cluster::default() };
        Self { _temp: temp, settings, cluster, identity }
    }

    fn install(&self, seat: &SshSeat) -> Installed {
        install(&self.settings, &self.cluster, &self.identity, seat).unwrap()
    }

    /// Connects, and returns what kubectl was started with. `env -i`: of the environment, only
    /// the shell is told.
    fn connect(&self, config: &Path, alias: &str, shell: &str) -> (Vec<String>, BTreeMap<String, String>) {
        for stale in ["argv", "env"] {
            let _ = std::fs::remove_file(self.settings.home.join(stale));
        }
        let out = Command::new("/usr/bin/ssh")
            .env_clear()
            .env("SHELL", shell)
            .arg("-F")
            .arg(config)
            .args(["-o", "BatchMode=yes", alias, "true"])
            .output()
            .unwrap();
        let read = |name: &str| {
            let raw = std::fs::read(self.settings.home.join(name)).unwrap_or_else(|e| {
                panic!("{e}\n{}\n{}", String::from_utf8_lossy(&out.stderr), text(config))
            });
            let raw = String::from_utf8(raw).unwrap();
            raw.split_terminator('\0').map(str::to_owned).collect::<Vec<_>>()
        };
        let env = read("env").into_iter().filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        });
        (read("argv"), env.collect())
    }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The options that ssh ends up with, as it prints them.
fn options(config: &Path, alias: &str) -> Vec<String> {
    let out =
        Command::new("/usr/bin/ssh").env_clear().arg("-G").arg("-F").arg(config).arg(alias).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// bash and dash have to be there, the others are taken along where they are.
fn shells() -> Vec<&'static str> {
    let others = ["/usr/bin/zsh", "/usr/bin/fish", "/usr/bin/ksh", "/bin/tcsh"];
    let mut shells = vec!["/bin/bash", "/bin/dash"];
    assert!(shells.iter().all(|s| Path::new(s).exists()));
    shells.extend(others.into_iter().filter(|s| Path::new(s).exists()));
    shells
}

fn expected(rig: &Rig, seat: &SshSeat) -> Vec<String> {
    let mut argv = Vec::new();
    argv.extend(rig.cluster.kubeconfig.iter().map(|f| format!("--kubeconfig={}", f.display())));
    argv.push(format!("--context={}", seat.context));
    argv.extend(rig.cluster.as_user.iter().map(|u| format!("--as={u}")));
    argv.extend(rig.cluster.as_groups.iter().map(|g| format!("--as-group={g}")));
    let seat_name = seat.seat.to_string();
    let rest = ["-n", &seat.namespace, "exec", "-i", &seat.pod, "-c", &seat_name, "--"];
    argv.extend(rest.map(str::to_owned));
    argv.extend(podbench_contract::session::session_argv().map(str::to_owned));
    argv
}

/// Names that somebody's kubeconfig or disk could hold: anything visible.
fn odd() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        "'", "\"", "\\", "$", "`", "%", "%%", "!", "#", ";", "&", "|", "(", ")", "<", ">", "*", "?", "[",
        "]", "{", "}", "~", "^", "=", " ", "  ", "ä", "ß", "日", "$HOME", "$(id)", "%h", "%d", "\\'", "\\\\",
        "-", "--x", "'\\''", "!!", "a", "b",
    ]);
    let mixed = prop::collection::vec(prop_oneof![3 => nasty.prop_map(str::to_owned), 1 => "\\PC"], 1..8);
    mixed.prop_map(|parts| parts.concat())
}

fn odd_folder() -> impl Strategy<Value = String> {
    odd()
        .prop_map(|s| s.replace(['/', '\0'], "_").replace("${", "$_").replace(':', ";"))
        .prop_filter("a name of its own", |s| s != "." && s != ".." && s.len() < 200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_name_reaches_kubectl_unchanged_through_any_shell(
        home in odd_folder(), context in odd(), user in odd(), group in odd(), kubeconfig in odd_folder(),
        explicit in any::<bool>(),
    ) {
        let mut rig = Rig::new(&home);
        let cwd = rig.settings.home.clone();
        rig.settings.kubeconfig_env = Some(format!("{kubeconfig}::/etc/other").into());
        rig.settings.kubectl_env = vec![("KUBECTL_REMOTE_COMMAND_WEBSOCKETS".into(), "false".into())];
        rig.cluster.as_user = Some(user);
        rig.cluster.as_groups = vec![group.clone(), "plain".into(), group];
        if explicit {
            rig.cluster.kubeconfig = Some(cwd.join(&kubeconfig));
        }
        let seat = SshSeat { context, ..seat() };
        let installed = rig.install(&seat);
        for shell in shells() {
            let (argv, env) = rig.connect(&installed.config, &installed.alias, shell);
            prop_assert_eq!(&argv, &expected(&rig, &seat), "{}", shell);
            prop_assert_eq!(env.get("HOME").map(String::as_str), cwd.to_str());
            prop_assert_eq!(env.get("PATH").map(String::as_str), Some("/usr/local/bin:/usr/bin:/bin"));
            prop_assert_eq!(env.get("KUBECTL_REMOTE_COMMAND_WEBSOCKETS").map(String::as_str), Some("false"));
            let list = format!("{}:/etc/other", cwd.join(&kubeconfig).display());
            prop_assert_eq!(env.get("KUBECONFIG"), if explicit { None } else { Some(&list) });
        }
    }

    #[test]
    fn a_path_option_means_to_ssh_what_it_meant_to_us(home in odd_folder()) {
        let rig = Rig::new(&home);
        let installed = rig.install(&seat());
        let options = options(&installed.config, &installed.alias);
        let known = format!("userknownhostsfile {}", rig.settings.config_dir.join("known_hosts").display());
        prop_assert!(options.contains(&known), "{}\n{:?}", known, options);
        let socket = format!("controlpath {}/", rig.settings.config_dir.join("cm").display());
        prop_assert!(options.iter().any(|o| o.starts_with(&socket) || o == "controlmaster false"), "{:?}", options);
        // -G prints IdentityFile as it is written; what ssh opened shows in the type of the key.
        let out = Command::new("/usr/bin/ssh").env_clear().args(["-v", "-F"]).arg(&installed.config)
            .args(["-o", "BatchMode=yes", &installed.alias, "true"]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        let key = said.lines().find(|l| l.contains("identity file ")).map(|l| !l.ends_with("type -1"));
        prop_assert_eq!(key, Some(true), "{}", said);
    }

    #[test]
    fn an_include_line_is_found_by_ssh_in_any_folder(folder in odd_folder()) {
        // OpenSSH 9.9 began to expand `%` in Include; both readings can't be served.
        prop_assume!(!folder.contains('%'));
        let mut rig = Rig::new("home");
        rig.settings.config_dir = rig.settings.home.parent().unwrap().join(folder);
        let installed = rig.install(&seat());
        let line = installed.include_missing.clone().unwrap();
        let main = rig.settings.home.join(".ssh/config");
        std::fs::write(&main, format!("{line}\nHost *\n  User nobody\n")).unwrap();
        prop_assert!(options(&main, &installed.alias).contains(&"user podbench".to_owned()), "{}", text(&main));
        let again = rig.install(&seat());
        prop_assert_eq!(again.include_missing, None, "{}", text(&main));
    }
}

#[test]
fn a_kubectl_whose_path_env_would_take_for_a_variable_is_still_run() {
    let rig = Rig::new("a=b");
    let installed = rig.install(&seat());
    for shell in shells() {
        assert_eq!(rig.connect(&installed.config, &installed.alias, shell).0, expected(&rig, &seat()));
    }
}

#[test]
fn nothing_that_a_host_block_sets_changes_the_connection() {
    let rig = Rig::new("home");
    let installed = rig.install(&seat());
    let hostile = "Host *\n  RemoteCommand echo no\n  RequestTTY force\n  ProxyJump nobody@nowhere\n  ForwardAgent yes\n  \
        ControlMaster no\n  ControlPath /tmp/%r@%h:%p\n  ControlPersist no\n  ProxyCommand false\n  User root\n  \
        StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  PermitLocalCommand yes\n  LocalCommand false\n  \
        PreferredAuthentications password\n  PubkeyAuthentication no\n  IdentitiesOnly no\n  UpdateHostKeys yes\n  \
        ForwardX11 yes\n  ForwardX11Trusted yes\n  Tunnel yes\n  GSSAPIAuthentication yes\n  CanonicalizeHostname yes\n  \
        ServerAliveInterval 0\n  ServerAliveCountMax 1\n  HostName example.org\n  HostKeyAlias other\n  \
        ExitOnForwardFailure yes\n  HostKeyAlgorithms rsa-sha2-256\n  ConnectTimeout 1\n  VerifyHostKeyDNS yes\n  \
        GlobalKnownHostsFile /tmp/x\n  ProxyUseFdpass yes\n";
    let main = rig.settings.home.join("main");
    std::fs::write(&main, format!("{}\n{hostile}", text(&installed.config))).unwrap();
    let (mut plain, mut among) =
        (options(&installed.config, &installed.alias), options(&main, &installed.alias));
    // LocalCommand is printed, and not permitted.
    for list in [&mut plain, &mut among] {
        list.retain(|o| !o.starts_with("localcommand "));
    }
    assert_eq!(plain, among);
    assert_eq!(rig.connect(&main, &installed.alias, "/bin/bash").0, expected(&rig, &seat()));
}

#[test]
fn the_line_that_is_asked_for_is_enough() {
    let rig = Rig::new("home");
    let installed = rig.install(&seat());
    let line = installed.include_missing.as_deref().unwrap();
    let main = rig.settings.home.join(".ssh/config");
    std::fs::write(&main, format!("{line}\nHost *\n  User nobody\n")).unwrap();
    // ssh takes `~` from HOME here.
    let out = Command::new("/usr/bin/ssh")
        .env_clear()
        .env("HOME", &rig.settings.home)
        .args(["-G", "-F"])
        .arg(&main)
        .arg(&installed.alias)
        .output()
        .unwrap();
    assert!(String::from_utf8(out.stdout).unwrap().contains("user podbench\n"), "{}", text(&main));
    assert_eq!(rig.install(&seat()).include_missing, None);
}

#[test]
fn a_forward_and_a_variable_of_the_users_own_are_left_to_ssh() {
    // Not to be cleared: `ClearAllForwardings yes` would take an editor's own -D away with them.
    let rig = Rig::new("home");
    let installed = rig.install(&seat());
    let main = rig.settings.home.join("main");
    let around = "Host *\n  SendEnv BEFORE\n";
    std::fs::write(
        &main,
        format!("{around}{}\nHost *\n  LocalForward 18080 h:80\n", text(&installed.config)),
    )
    .unwrap();
    let options = options(&main, &installed.alias);
    assert!(options.iter().any(|o| o.starts_with("localforward 18080")));
    assert!(options.contains(&"exitonforwardfailure no".to_owned()));
    assert!(!options.iter().any(|o| o.starts_with("sendenv")), "{options:?}");
}

#[test]
fn the_files_are_the_users_alone_and_a_second_run_writes_nothing() {
    let rig = Rig::new("home");
    let installed = rig.install(&seat());
    let root = &rig.settings.config_dir;
    let mode = |p: PathBuf| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
    for folder in [root.clone(), root.join("config.d"), root.join("cm")] {
        assert_eq!(mode(folder), 0o700);
    }
    for file in [installed.config.clone(), root.join("known_hosts"), root.join("lock")] {
        assert_eq!(mode(file), 0o600);
    }
    let written = |p: &Path| std::fs::metadata(p).unwrap().modified().unwrap();
    let before = (written(&installed.config), written(&root.join("known_hosts")));
    let again = rig.install(&seat());
    assert_eq!((written(&again.config), written(&root.join("known_hosts"))), before);
    assert_eq!(installed.alias, "podbench-demo-api-7d9f-1");
    let line = format!("podbench-{}-1 {}\n", seat().pod_uid, seat().host_key.bare());
    assert_eq!(text(&root.join("known_hosts")), line);
}

#[test]
fn a_pod_made_anew_replaces_its_stanza_and_never_its_host_key() {
    let rig = Rig::new("home");
    let first = rig.install(&seat());
    let anew = SshSeat { pod_uid: "11111111-0000-0000-0000-000000000000".into(), ..seat() };
    let second = rig.install(&anew);
    assert_eq!(first.config, second.config);
    assert!(text(&second.config).contains("HostKeyAlias podbench-11111111-"));
    let known = text(&rig.settings.config_dir.join("known_hosts"));
    assert!(known.starts_with("podbench-11111111-") && known.lines().count() == 1, "{known}");
    let sockets: Vec<String> = [&seat(), &anew]
        .map(|s| {
            let stanza = render(&rig.settings, &rig.cluster, &rig.identity, s, false).unwrap();
            stanza.lines().find(|l| l.contains("ControlPath")).unwrap().to_owned()
        })
        .to_vec();
    assert_ne!(sockets[0], sockets[1], "the new pod would be reached through the old one's master");
}

#[test]
fn a_long_home_goes_without_a_socket_and_says_so() {
    let rig = Rig::new(&"long".repeat(20));
    let installed = rig.install(&seat());
    assert!(options(&installed.config, &installed.alias).contains(&"controlmaster false".to_owned()));
    assert!(installed.warnings.iter().any(|w| w.contains("PODBENCH_CONFIG_DIR")));
    let short = Rig::new("h").install(&seat());
    assert_eq!(short.warnings, Vec::<String>::new());
}

#[test]
fn a_printed_stanza_is_the_written_one_and_plain_runs_sshd_itself() {
    let rig = Rig::new("home");
    let printed = render(&rig.settings, &rig.cluster, &rig.identity, &seat(), false).unwrap();
    assert!(!rig.settings.config_dir.exists(), "printing writes nothing");
    let installed = rig.install(&seat());
    assert!(printed.starts_with(&text(&installed.config)));
    assert!(printed.contains(&text(&rig.settings.config_dir.join("known_hosts"))));
    let plain = render(&rig.settings, &rig.cluster, &rig.identity, &seat(), true).unwrap();
    let config = rig.settings.home.join("plain");
    std::fs::write(&config, plain).unwrap();
    let (argv, _) = rig.connect(&config, &installed.alias, "/bin/dash");
    let tail = podbench_contract::session::sshd_argv("/run/podbench/1234/sshd_config");
    assert!(argv.ends_with(&tail), "{argv:?}");
}

#[test]
fn what_a_pod_cannot_be_called_never_becomes_a_line() {
    let rig = Rig::new("home");
    let bad: [fn(&mut SshSeat); 8] = [
        |s| s.pod = "a\nProxyCommand x".into(),
        |s| s.pod = "-oProxyCommand=x".into(),
        |s| s.namespace = "A b".into(),
        |s| s.namespace = String::new(),
        |s| s.pod_uid = "u\n".into(),
        |s| s.login = "root\nProxyCommand x".into(),
        |s| s.context = "a\nb".into(),
        |s| s.context = "\u{1b}[2J".into(),
    ];
    for change in bad {
        let mut seat = seat();
        change(&mut seat);
        let failure = install(&rig.settings, &rig.cluster, &rig.identity, &seat).unwrap_err();
        assert_eq!(failure.kind.exit(), 2, "{failure}");
        assert!(!failure.to_string().contains('\u{1b}'));
    }
    assert!(!rig.settings.config_dir.exists(), "nothing half-written");
}

#[test]
fn twenty_at_once_lose_no_line() {
    let rig = Rig::new("home");
    std::thread::scope(|scope| {
        for n in 0..20 {
            let rig = &rig;
            scope.spawn(move || {
                let uid = format!("{n:08}-0000-0000-0000-000000000000");
                rig.install(&SshSeat { pod: format!("p-{n}"), pod_uid: uid, ..seat() });
            });
        }
    });
    assert_eq!(text(&rig.settings.config_dir.join("known_hosts")).lines().count(), 20);
    assert_eq!(std::fs::read_dir(rig.settings.config_dir.join("config.d")).unwrap().count(), 20);
}
