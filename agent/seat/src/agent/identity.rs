//! Who the seat is to sshd: a login that NSS really answers for our uid, and a home that can be
//! written.
//!
//! sshd refuses a login without a passwd record before it looks at a key. NSS is asked through
//! `getent`: a static libc can't load its modules. A uid that the image doesn't know gets a record in the image's writable database;
//! that database serves no uid or gid under [`FLOOR`], and with a read-only root it can't be
//! written: then the records lie in the runtime folder, and a preloaded library puts them before
//! NSS for sshd and what it starts.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::Duration;

use podbench_contract::ids::{Gid, Uid};
use podbench_contract::measurement::Login;
use podbench_contract::session::file;
use podbench_contract::text::{is_login, is_path};

use super::protocol::State;
use crate::exec::{Program, run};
use crate::runtime::{Runtime, read_bounded};
use crate::settings;

/// The database of libnss-extrausers.
pub(crate) const DATABASE: &str = "/var/lib/extrausers/passwd";
/// It serves no uid under this, and no gid under it but [`USERS`].
const FLOOR: u32 = 500;
/// The group `users`, which that database serves.
const USERS: Gid = Gid(100);
/// The login of a uid that had none.
const NAME: &str = "podbench";
/// A session's shell.
const SHELL: &str = "/bin/bash";
/// By their paths: the PATH of a spec is somebody's text.
const GETENT: &str = "/usr/bin/getent";
/// How long a program of a start-up step may take.
const LIMIT: Duration = Duration::from_secs(4);

/// A passwd record, as far as the seat needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    name: String,
    uid: Uid,
    home: String,
}

impl Record {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let uid = fields.nth(1)?.parse().ok()?;
        let home = fields.nth(2)?.to_owned();
        Some(Self { name, uid, home })
    }

    fn line(&self, gid: Gid) -> String {
        let Self { name, uid, home } = self;
        format!("{name}:*:{uid}:{gid}::{home}:{SHELL}\n")
    }
}

/// What the step found and made.
pub(crate) struct Identity {
    /// The login that sshd will accept, as NSS answers it.
    pub(crate) login: Login,
    /// The home folder that goes with it.
    pub(crate) home: String,
    /// Variables without which NSS doesn't answer so.
    pub(crate) overlay: Vec<(String, String)>,
}

/// Finds or makes the login.
pub(crate) fn settle(uid: Uid, gid: Gid, runtime: Option<&Runtime>, state: &mut State) -> Identity {
    let (found, name) = look_up(uid);
    let old = found.as_ref().map(|r| r.home.clone());
    let home = home(uid, old.as_deref(), runtime);
    if let Err(why) = &home {
        state.fail("home", why);
    }
    let wanted = Record {
        name: found.as_ref().map_or(name, |r| r.name.clone()),
        uid,
        home: home.or(old.ok_or(())).unwrap_or_else(|()| "/".to_owned()),
    };
    let mut overlay = Vec::new();
    if found.as_ref() != Some(&wanted) {
        overlay = introduce(&wanted, found.is_none(), gid, runtime, state);
    }
    let mut record = confirm(uid, &overlay);
    if record.is_none() && overlay.is_empty() {
        // The database took the record and doesn't serve it: another NSS configuration.
        if let Some(Ok(env)) = runtime.map(|r| make_overlay(r, &wanted, gid)) {
            overlay = env;
            record = confirm(uid, &overlay);
        }
    }
    let login = login(uid, record.as_ref());
    if let Some(why) = &login.why {
        state.fail("nss-identity", why);
    }
    let home = record.map_or(wanted.home, |r| r.home);
    Identity { login, home, overlay }
}

/// The login and home that NSS answers now, without making anything.
pub(crate) fn of(runtime: &Runtime) -> (Login, String) {
    let uid = crate::runtime::own_uid();
    let record = confirm(uid, &overlay_env(runtime));
    (login(uid, record.as_ref()), record.map(|r| r.home).unwrap_or_default())
}

fn login(uid: Uid, record: Option<&Record>) -> Login {
    match record {
        Some(record) if is_login(&record.name) => Login { name: Some(record.name.clone()), why: None },
        Some(record) => {
            Login { name: None, why: Some(format!("the seat's login name can't be used: {}", record.name)) }
        }
        None => Login { name: None, why: Some(format!("NSS knows no name for uid {uid}")) },
    }
}

/// Makes NSS know `wanted`: in the database where that can serve it, else by an overlay, whose
/// variables are answered.
fn introduce(
    wanted: &Record,
    unknown: bool,
    gid: Gid,
    runtime: Option<&Runtime>,
    state: &mut State,
) -> Vec<(String, String)> {
    let appended = if unknown && wanted.uid.0 >= FLOOR {
        // The gid of a record changes nothing for a seat that isn't root: sshd can't set it.
        let gid = if gid.0 >= FLOOR || gid == USERS { gid } else { USERS };
        append(DATABASE, &wanted.line(gid)).map_err(|e| format!("{DATABASE}: {e}"))
    } else {
        Err(format!("no database serves another record for uid {}", wanted.uid))
    };
    let Err(why) = appended else { return Vec::new() };
    match runtime.map(|r| make_overlay(r, wanted, gid)) {
        Some(Ok(env)) => env,
        Some(Err(e)) => {
            state.fail("nss-identity", format!("{why}; {e}"));
            Vec::new()
        }
        None => {
            state.fail("nss-identity", why);
            Vec::new()
        }
    }
}

/// Our record, and the name to take where there is none. One question for both: the name mustn't
/// be another uid's.
fn look_up(uid: Uid) -> (Option<Record>, String) {
    let said = run(&Program::new([GETENT, "passwd", &uid.to_string(), NAME]), LIMIT);
    read_answer(&said.stdout, uid)
}

fn read_answer(text: &str, uid: Uid) -> (Option<Record>, String) {
    let records: Vec<Record> = text.lines().filter_map(Record::parse).collect();
    let taken = records.iter().any(|r| r.name == NAME && r.uid != uid);
    let name = if taken { format!("{NAME}-{uid}") } else { NAME.to_owned() };
    (records.into_iter().find(|r| r.uid == uid), name)
}

/// What NSS answers now.
fn confirm(uid: Uid, overlay: &[(String, String)]) -> Option<Record> {
    let getent = Program::new([GETENT, "passwd", &uid.to_string()]).with_env(overlay);
    read_answer(&run(&getent, LIMIT).stdout, uid).0
}

fn append(database: &str, line: &str) -> io::Result<()> {
    // One write of one line: another seat's processes never see half a record.
    OpenOptions::new().append(true).open(database)?.write_all(line.as_bytes())
}

/// Writes the records of an overlay and answers its variables.
fn make_overlay(runtime: &Runtime, wanted: &Record, gid: Gid) -> Result<Vec<(String, String)>, String> {
    if wrapper().is_none() {
        return Err("this image has no libnss_wrapper.so to do without a database".to_owned());
    }
    // The library answers from its files alone, so what the image knows is in them too.
    let known = read_bounded("/etc/passwd", 1 << 20).unwrap_or_default();
    let others = known
        .lines()
        .filter(|l| Record::parse(l).is_some_and(|r| r.uid != wanted.uid && r.name != wanted.name));
    let passwd = others.fold(wanted.line(gid), |text, line| text + line + "\n");
    let mut group = read_bounded("/etc/group", 1 << 20).unwrap_or_default();
    let gid = gid.to_string();
    if !group.lines().any(|l| l.split(':').nth(2) == Some(gid.as_str())) {
        group.extend([NAME, ":*:", &gid, ":\n"]);
    }
    for (name, text) in [(file::PASSWD, passwd), (file::GROUP, group)] {
        runtime.write(name, &text).map_err(|e| format!("{}: {e}", runtime.path(name)))?;
    }
    Ok(overlay_env(runtime))
}

/// The variables of the overlay that this runtime folder holds; none without one.
pub(crate) fn overlay_env(runtime: &Runtime) -> Vec<(String, String)> {
    let [passwd, group] = [file::PASSWD, file::GROUP].map(|name| runtime.path(name));
    let Some(library) = wrapper().filter(|_| Path::new(&passwd).exists()) else { return Vec::new() };
    [("LD_PRELOAD", library), ("NSS_WRAPPER_PASSWD", passwd), ("NSS_WRAPPER_GROUP", group)]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
}

fn wrapper() -> Option<String> {
    let arch = std::env::consts::ARCH;
    let dirs = [format!("/usr/lib/{arch}-linux-gnu"), "/usr/lib64".to_owned(), "/usr/lib".to_owned()];
    dirs.iter().map(|dir| format!("{dir}/libnss_wrapper.so")).find(|path| Path::new(path).exists())
}

/// The first folder that can be a home, made where it isn't there.
fn home(uid: Uid, recorded: Option<&str>, runtime: Option<&Runtime>) -> Result<String, String> {
    let mut candidates: Vec<String> = recorded.map(str::to_owned).into_iter().collect();
    // A volume that is mounted as the home is named by HOME; a record that exists says it as well.
    candidates.extend(settings::home().filter(|_| recorded.is_none()));
    candidates.push(format!("/tmp/podbench-{uid}"));
    candidates.extend(runtime.map(|r| r.path("home")));
    let mut why = Vec::new();
    for dir in candidates {
        match usable(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) => why.push(format!("{dir}: {e}")),
        }
    }
    Err(why.join("; "))
}

/// A folder of the seat's own that we can write. A HOME that leads through `/proc` would be the
/// target's root file system.
fn usable(dir: &str) -> io::Result<()> {
    if !is_path(dir) || dir == "/" {
        return Err(io::Error::other("not a home"));
    }
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => {}
        // A read-only file system says so before it says that the folder is there.
        Err(_) if Path::new(dir).is_dir() => {}
        Err(e) => return Err(e),
    }
    let real = std::fs::canonicalize(dir)?;
    if ["/proc", "/sys"].iter().any(|system| real.starts_with(system)) {
        return Err(io::Error::other("not a home"));
    }
    rustix::fs::access(dir, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_uid_without_a_record_is_named_podbench_unless_somebody_is() {
        assert_eq!(read_answer("", Uid(1234)), (None, "podbench".to_owned()));
        let other = "podbench:*:900:900::/home/p:/bin/sh\n";
        assert_eq!(read_answer(other, Uid(1234)), (None, "podbench-1234".to_owned()));
        let own = "www-data:*:33:33:www:/tmp/podbench-33:/bin/bash\n";
        let record = Record { name: "www-data".into(), uid: Uid(33), home: "/tmp/podbench-33".into() };
        assert_eq!(read_answer(own, Uid(33)).0, Some(record));
    }

    #[test]
    fn a_broken_record_is_no_record() {
        for line in ["", "x", "x:*:notanumber:1::/h:/s", "x:*:1"] {
            assert_eq!(Record::parse(line), None, "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn no_answer_of_nss_panics_and_a_name_is_always_offered(text in "[a-z:0-9\n]*", uid in any::<u32>()) {
            let (record, name) = read_answer(&text, Uid(uid));
            prop_assert!(is_login(&name), "{}", name);
            prop_assert!(record.is_none_or(|r| r.uid == Uid(uid)));
        }
    }

    #[test]
    fn a_record_is_read_back_as_it_was_written() {
        let record =
            Record { name: "podbench".into(), uid: Uid(1_000_680_000), home: "/tmp/podbench-1".into() };
        let line = record.line(USERS);
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(Record::parse(line.trim_end()), Some(record));
    }

    #[test]
    fn a_home_that_leads_into_the_target_is_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let link = tmp.path().join("home");
        std::os::unix::fs::symlink("/proc/self/root/tmp", &link).unwrap();
        assert!(usable("/proc/self/root/tmp").is_ok(), "the link ends in our own root here");
        std::os::unix::fs::symlink("/proc/self", tmp.path().join("p")).unwrap();
        assert!(usable(tmp.path().join("p").to_str().unwrap()).is_err());
        for bad in ["", "/", "relative", "/a/../b", "/nosuch/deep/folder", "/dev/null"] {
            assert!(usable(bad).is_err(), "{bad:?}");
        }
        let made = tmp.path().join("new");
        usable(made.to_str().unwrap()).unwrap();
        assert!(made.is_dir());
    }
}
