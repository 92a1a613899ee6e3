use std::os::unix::net::UnixListener;

use podbench_contract::keys::PublicKey;
use proptest::prelude::*;

use super::*;
use crate::ssh::tests::{KEY, seat};
use crate::ssh::{Identity, Installed, SshSeat, install};

/// A home with stanzas.
struct Home {
    _temp: tempfile::TempDir,
    settings: Settings,
}

impl Home {
    fn new() -> Self {
        // Short: a socket's path is.
        let temp = tempfile::Builder::new().prefix("pb").tempdir_in("/tmp").unwrap();
        Self { settings: Settings::bare(temp.path()), _temp: temp }
    }

    fn install(&self, seat: &SshSeat) -> Installed {
        let cluster = Cluster { kubectl: "/usr/bin/kubectl".into(), ..Cluster::default() };
        let public = PublicKey::parse(KEY).unwrap();
        let identity = Identity { file: self.settings.home.join(".ssh/id_ed25519"), public };
        install(&self.settings, &cluster, &identity, seat).unwrap()
    }

    fn known(&self) -> String {
        std::fs::read_to_string(self.settings.config_dir.join("known_hosts")).unwrap()
    }

    fn stanzas(&self) -> Vec<Stanza> {
        let Stanzas { known, unread } = stanzas(&self.settings);
        assert!(unread.is_empty(), "{unread:?}");
        known
    }

    /// Every file below the folder, by path.
    fn files(&self) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for folder in ["", "config.d", "cm"] {
            all.extend(entries(&self.settings.config_dir.join(folder)).unwrap().into_iter().map(|(p, _)| p));
        }
        all
    }
}

fn take(home: &Home, stanzas: &[Stanza], mode: Mode) -> Taken {
    let mut taken = Taken::default();
    take_back(&home.settings, stanzas, mode, &mut taken).unwrap();
    taken
}

fn swept(home: &Home, mode: Mode) -> Taken {
    let mut taken = Taken::default();
    sweep(&home.settings, mode, &[], &mut taken).unwrap();
    taken
}

fn second() -> SshSeat {
    SshSeat { seat: podbench_contract::ids::SeatName::parse("podbench-2").unwrap(), ..seat() }
}

#[test]
fn a_stanza_goes_with_its_host_key_and_its_socket_and_its_neighbour_stays() {
    let home = Home::new();
    let (one, two) = (home.install(&seat()), home.install(&second()));
    let all = home.stanzas();
    assert_eq!(all.iter().map(|s| s.alias.clone()).collect::<Vec<_>>(), [one.alias, two.alias]);
    let socket = all[0].socket.clone().unwrap();
    drop(UnixListener::bind(&socket).unwrap());
    let before = home.files();
    let told = take(&home, &all[..1], Mode::DryRun);
    assert_eq!((home.files(), home.stanzas().len()), (before, 2), "a dry run writes nothing");
    let taken = take(&home, &all[..1], Mode::Remove);
    assert_eq!(told, taken, "a dry run tells what is then done");
    assert_eq!(taken.files, [one.config.clone(), socket.clone()]);
    assert!(!one.config.exists() && !socket.exists() && two.config.exists());
    assert_eq!(home.known().lines().count(), 1);
    assert!(home.known().starts_with(&all[1].owner.host_key_alias()));
    assert!(take(&home, &all[..1], Mode::Remove).is_empty(), "twice is once");
}

#[test]
fn a_second_alias_of_the_same_seat_keeps_the_host_key() {
    let home = Home::new();
    home.install(&seat());
    let named = home.install(&SshSeat { alias: Some("api".into()), ..seat() });
    let plain: Vec<Stanza> = home.stanzas().into_iter().filter(|s| s.alias != named.alias).collect();
    assert!(take(&home, &plain, Mode::DryRun).known_hosts.is_empty());
    assert!(take(&home, &plain, Mode::Remove).known_hosts.is_empty());
    assert_eq!(home.known().lines().count(), 1);
    assert_eq!(take(&home, &home.stanzas(), Mode::Remove).known_hosts.len(), 1);
    assert_eq!(home.known(), "");
}

#[test]
fn what_podbench_did_not_write_is_never_touched() {
    let home = Home::new();
    home.install(&seat());
    let config = home.settings.config_dir.join("config.d");
    let foreign = ["theirs.conf", "notes.txt", ".theirs.swp", "podbench-x.conf"].map(|f| config.join(f));
    for file in &foreign {
        std::fs::write(file, "Host theirs\n").unwrap();
    }
    let link = config.join("link.conf");
    std::os::unix::fs::symlink(&home.stanzas()[0].file, &link).unwrap();
    let known = home.known() + "example.org ssh-rsa AAAA\npodbench-mine-1 ssh-rsa AAAA\n";
    std::fs::write(home.settings.config_dir.join("known_hosts"), &known).unwrap();
    let all = home.stanzas();
    assert_eq!(all.len(), 1, "{all:?}");
    take(&home, &all, Mode::Remove);
    swept(&home, Mode::Remove);
    assert!(foreign.iter().all(|f| f.exists()) && std::fs::symlink_metadata(&link).is_ok());
    assert_eq!(home.known(), "example.org ssh-rsa AAAA\npodbench-mine-1 ssh-rsa AAAA\n");
}

#[test]
fn a_stanza_that_leads_elsewhere_by_now_stays() {
    let home = Home::new();
    home.install(&seat());
    let old = home.stanzas();
    let new = home.install(&SshSeat { pod_uid: "11111111-6f9c-4b43-9d1f-0d6e0b0c9a11".into(), ..seat() });
    assert_eq!(new.alias, old[0].alias, "a pod made anew keeps its alias");
    assert!(take(&home, &old, Mode::Remove).is_empty());
    assert!(new.config.exists() && home.known().lines().count() == 1);
}

#[test]
fn a_sweep_takes_what_leads_nowhere_and_nothing_that_is_used() {
    let home = Home::new();
    home.install(&seat());
    let used = home.stanzas()[0].clone();
    let dir = &home.settings.config_dir;
    let line = |n: u32| format!("podbench-22222222-6f9c-4b43-9d1f-0d6e0b0c9a11-{n} ssh-ed25519 AAAA\n");
    std::fs::write(dir.join("known_hosts"), home.known() + &line(1) + &line(2)).unwrap();
    // Kept by hand, as --print-config says.
    std::fs::create_dir_all(home.settings.home.join(".ssh")).unwrap();
    let by_hand = "Host api\n  HostKeyAlias podbench-22222222-6f9c-4b43-9d1f-0d6e0b0c9a11-2\n";
    std::fs::write(home.settings.home.join(".ssh/config"), by_hand).unwrap();
    let live = UnixListener::bind(used.socket.as_ref().unwrap()).unwrap();
    let dead = dir.join("cm/0123456789ab");
    drop(UnixListener::bind(&dead).unwrap());
    let not_ours = dir.join("cm/agent.sock");
    drop(UnixListener::bind(&not_ours).unwrap());
    std::fs::create_dir_all(dir.join("state")).unwrap();
    let left = [
        ".known_hostsAbCd12.tmp",
        "config.d/.api.confAbCd12.tmp",
        "cm/.podbench-trya1B2c3.tmp",
        "state/.22222222-6f9c-4b43-9d1f-0d6e0b0c9a11.jsonAbCd12.tmp",
    ];
    for file in left {
        std::fs::write(dir.join(file), "").unwrap();
    }
    let told = swept(&home, Mode::DryRun);
    assert!(dead.exists() && home.known().contains(&line(1)), "a dry run writes nothing");
    let taken = swept(&home, Mode::Remove);
    assert_eq!(told, taken);
    assert_eq!(taken.files.len(), 1 + left.len(), "{taken:?}");
    assert!(!dead.exists() && not_ours.exists() && used.socket.as_ref().unwrap().exists());
    assert!(!home.known().contains(&line(1)) && home.known().contains(&line(2)));
    assert!(home.known().contains(&used.owner.host_key_alias()));
    assert_eq!(is_connected(&used), Some(true));
    drop(live);
    assert_eq!(is_connected(&used), Some(false));
}

#[test]
fn a_known_hosts_that_nobody_can_read_keeps_the_stanza_that_needs_it() {
    let home = Home::new();
    let one = home.install(&seat());
    let file = home.settings.config_dir.join("known_hosts");
    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    let mut taken = Taken::default();
    let failure = take_back(&home.settings, &home.stanzas(), Mode::Remove, &mut taken).unwrap_err();
    assert!(failure.message.contains("known_hosts"), "{failure:?}");
    assert!(one.config.exists() && taken.is_empty());
}

#[test]
fn what_cannot_be_read_is_told_and_hides_nothing_else() {
    let home = Home::new();
    home.install(&seat());
    // As root a file is always readable; a link to itself is to nobody.
    let folder = home.settings.config_dir.join("config.d");
    std::fs::remove_dir_all(home.settings.config_dir.join("cm")).unwrap();
    std::fs::rename(&folder, folder.with_extension("kept")).unwrap();
    std::fs::write(&folder, "").unwrap();
    let found = stanzas(&home.settings);
    assert!(found.known.is_empty() && found.unread[0].contains("config.d"), "{found:?}");
}

#[test]
fn a_line_of_known_hosts_that_an_included_file_uses_stays_however_it_is_spelled() {
    let home = Home::new();
    home.install(&seat());
    let name = |n: u32| format!("podbench-22222222-6f9c-4b43-9d1f-0d6e0b0c9a11-{n}");
    let lines: String = (1..=4).map(|n| format!("{} ssh-ed25519 AAAA\n", name(n))).collect();
    std::fs::write(home.settings.config_dir.join("known_hosts"), home.known() + &lines).unwrap();
    let ssh = home.settings.home.join(".ssh");
    std::fs::create_dir_all(ssh.join("more[1]")).unwrap();
    std::fs::write(ssh.join("config"), "include \"more\\[1\\]/*.conf\" nosuch\nInclude=~/.ssh/own\n")
        .unwrap();
    std::fs::write(ssh.join("more[1]/a.conf"), format!("Host a\n\thostkeyalias\t\"{}\"\n", name(1))).unwrap();
    std::fs::write(ssh.join("own"), format!("Host b\nHostKeyAlias={}\nInclude deep\n", name(2))).unwrap();
    std::fs::write(ssh.join("deep"), format!("Host c\n  HOSTKEYALIAS {}\nInclude deep\n", name(3))).unwrap();
    assert_eq!(swept(&home, Mode::Remove).known_hosts, [name(4)]);
}

#[test]
fn without_a_folder_nothing_is_made() {
    let home = Home::new();
    assert!(home.stanzas().is_empty());
    assert!(take(&home, &[], Mode::Remove).is_empty());
    assert!(swept(&home, Mode::Remove).is_empty());
    assert!(!home.settings.config_dir.exists());
}

#[test]
fn a_socket_elsewhere_is_not_a_stanzas_own() {
    let folder = Path::new("/home/u/.podbench/cm");
    let of = |path: &str| socket_of(&format!("Host a\n  ControlPath {path}\n"), folder);
    assert_eq!(of("/home/u/.podbench/cm/0123456789ab"), Some(folder.join("0123456789ab")));
    for bad in
        ["none", "/home/u/.ssh/0123456789ab", "/home/u/.podbench/cm/../lock", "/home/u/.podbench/cm/lock"]
    {
        assert_eq!(of(bad), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn only_names_of_ours_are_ours(name in "[a-z0-9.-]{0,60}") {
        // A UID has 32 hexadecimal digits in five groups: none is hit by chance.
        prop_assert!(!is_host_key_alias(&name));
        prop_assert!(!is_temporary(&name) || name.starts_with('.'));
    }

    #[test]
    fn every_name_that_a_stanza_looks_up_is_known_again(uid in "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", n in 1_u32..100_000) {
        let owner = Owner { pod_uid: uid, seat: format!("podbench-{n}"), ..Owner {
            context: String::new(), kubeconfig: String::new(), namespace: String::new(),
            pod: String::new(), pod_uid: String::new(), seat: String::new(),
        }};
        prop_assert!(is_host_key_alias(&owner.host_key_alias()));
    }
}
