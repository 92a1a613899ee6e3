use super::*;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn a_planted_link_is_replaced_and_what_it_leads_to_stays() {
    let temp = tempfile::tempdir().unwrap();
    let victim = temp.path().join("victim");
    std::fs::write(&victim, "mine").unwrap();
    let path = temp.path().join("a.conf");
    std::os::unix::fs::symlink(&victim, &path).unwrap();
    assert_eq!(read(&path).unwrap(), Found::Foreign);
    replace(&path, "text").unwrap();
    assert_eq!(read(&path).unwrap(), Found::Text("text".into()));
    assert_eq!(std::fs::read_to_string(victim).unwrap(), "mine");
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_linked_config_folder_works_and_a_loose_one_is_tightened() {
    let temp = tempfile::tempdir().unwrap();
    let real = temp.path().join("dotfiles");
    std::fs::create_dir(&real).unwrap();
    std::fs::set_permissions(&real, Permissions::from_mode(0o775)).unwrap();
    std::os::unix::fs::symlink(&real, temp.path().join(".podbench")).unwrap();
    let settings = Settings::bare(temp.path());
    drop(Layout::new(&settings).open(&settings).unwrap());
    assert_eq!(mode(&real), 0o700);
    assert_eq!(mode(&real.join("config.d")), 0o700);
}

#[test]
fn a_folder_that_is_a_file_or_cannot_be_made_is_the_disks_fault() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(temp.path().join(".podbench"), "").unwrap();
    let settings = Settings::bare(temp.path());
    for failure in [
        Layout::new(&settings).open(&settings).unwrap_err(),
        Layout::new(&settings).check(&settings).unwrap_err(),
    ] {
        assert_eq!(failure.kind.exit(), 1, "{failure}");
    }
    let settings = Settings::bare("/proc/nowhere");
    assert_eq!(Layout::new(&settings).open(&settings).unwrap_err().kind, Kind::Disk);
}

#[test]
fn the_lock_is_waited_for_and_not_forever() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lock");
    let held = Lock::take(&path, Duration::ZERO).unwrap();
    let failure = Lock::take(&path, Duration::from_millis(60)).unwrap_err();
    assert!(failure.message.contains("another podbench"), "{failure}");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| Lock::take(&path, Duration::from_secs(5)));
        sleep(Duration::from_millis(50));
        drop(held);
        assert!(waiting.join().unwrap().is_ok());
    });
}

#[test]
fn a_lock_that_is_a_planted_link_is_not_followed() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lock");
    std::os::unix::fs::symlink(temp.path().join("elsewhere"), &path).unwrap();
    assert!(Lock::take(&path, Duration::ZERO).is_err());
    assert!(!temp.path().join("elsewhere").exists());
}

#[test]
fn a_temporary_is_no_stanza() {
    let temp = tempfile::tempdir().unwrap();
    // A folder where the file should be: the rename fails, and nothing is left.
    let path = temp.path().join("a.conf");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("x"), "").unwrap();
    assert!(replace(&path, "text").is_err());
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
}

#[test]
fn somebody_elses_folder_is_refused_before_anything_is_written() {
    if !rustix::process::geteuid().is_root() {
        // Only root can make a folder that is somebody else's.
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let settings = Settings::bare(temp.path());
    let layout = Layout::new(&settings);
    std::fs::create_dir(&layout.root).unwrap();
    std::os::unix::fs::chown(&layout.root, Some(1234), None).unwrap();
    let failure = layout.check(&settings).unwrap_err();
    assert!(failure.message.contains("belongs to uid 1234"), "{failure}");
    // As under sudo: HOME is the user's, and what root writes there stops the user's ssh.
    std::fs::remove_dir(&layout.root).unwrap();
    std::os::unix::fs::chown(temp.path(), Some(1234), None).unwrap();
    let failure = layout.check(&settings).unwrap_err();
    assert!(failure.message.contains("you are root") && !layout.root.exists(), "{failure}");
}

#[test]
fn a_rehearsal_finds_what_the_disk_refuses_and_leaves_no_stanza_folder() {
    let temp = tempfile::tempdir().unwrap();
    let settings = Settings::bare(temp.path());
    let layout = Layout::new(&settings);
    let rehearse = || layout.rehearse_within(&settings, Duration::ZERO);
    rehearse().unwrap();
    let left: Vec<_> = std::fs::read_dir(&layout.root).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["lock"]);
    std::fs::create_dir(layout.known_hosts()).unwrap();
    assert!(rehearse().unwrap_err().message.contains("known_hosts"));
    std::fs::remove_dir(layout.known_hosts()).unwrap();
    std::fs::write(layout.stanzas(), "").unwrap();
    assert_eq!(rehearse().unwrap_err().kind, Kind::Disk);
    std::fs::remove_file(layout.stanzas()).unwrap();
    let held = Lock::take(&layout.lock(), Duration::ZERO).unwrap();
    assert!(rehearse().unwrap_err().message.contains("another podbench"));
    drop(held);
    std::fs::remove_file(layout.lock()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        layout.lock(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(rehearse().unwrap_err().message.contains("regular file"));
    std::fs::remove_dir_all(&layout.root).unwrap();
    std::os::unix::fs::symlink(temp.path().join("nowhere"), &layout.root).unwrap();
    assert_eq!(rehearse().unwrap_err().kind, Kind::Disk);
}
