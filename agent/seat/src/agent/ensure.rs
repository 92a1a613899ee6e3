//! The start-up steps. Each makes sure of one thing, records what went wrong, and none is fatal.
//!
//! A container starts from its image every time, so nothing is assumed to be left from before and
//! nothing that is there already is made again.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use podbench_contract::ids::{Gid, Uid};
use podbench_contract::keys::PublicKey;
use podbench_contract::session::file;
use podbench_contract::sshd;
use ssh_key::rand_core::OsRng;
use ssh_key::{Algorithm, LineEnding, PrivateKey};

use super::identity::{self, Identity};
use super::protocol::State;
use crate::runtime::{self, Runtime};
use crate::settings;

/// What the steps left for the agent's life.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    /// Where the socket and sshd's files are; none could be made where this is `None`.
    pub(crate) runtime: Option<Runtime>,
    /// Variables that let a program resolve the seat's own uid where NSS alone can't.
    pub(crate) overlay: Vec<(String, String)>,
}

/// Runs every step, in order.
pub(crate) fn run(runtime: Option<Runtime>, state: &mut State) -> Seat {
    let uid = runtime::own_uid();
    let gid = Gid(rustix::process::getgid().as_raw());
    if uid.is_root() {
        step(state, "privsep-dir", privsep_dir());
        step(state, "nss-db-mode", tighten(identity::DATABASE));
    }
    let Identity { login, home, overlay } = identity::settle(uid, gid, runtime.as_ref(), state);
    state.login = login;
    state.home = home;
    if let Some(runtime) = &runtime {
        match host_key(runtime) {
            Ok(key) => state.sshd.host_key = Some(key.bare()),
            Err(why) => state.fail("host-key", why),
        }
        let keys = authorized_keys(settings::public_key().as_deref());
        step(state, "authorized-keys", keys.and_then(|keys| write(runtime, file::AUTHORIZED_KEYS, &keys)));
        sshd_config(uid, runtime, &overlay, state);
    }
    step(state, "vscode-settings", editor_settings(&state.home));
    Seat { runtime, overlay }
}

fn step(state: &mut State, name: &str, done: Result<(), String>) {
    if let Err(why) = done {
        state.fail(name, why);
    }
}

fn write(runtime: &Runtime, name: &str, content: &str) -> Result<(), String> {
    runtime.write(name, content).map_err(|e| format!("{}: {e}", runtime.path(name)))
}

/// sshd's privilege separation folder: root's sshd alone wants it.
fn privsep_dir() -> Result<(), String> {
    const DIR: &str = "/run/sshd";
    match DirBuilder::new().mode(0o755).create(DIR) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists || Path::new(DIR).is_dir() => Ok(()),
        Err(e) => Err(format!("{DIR}: {e}")),
    }
}

/// Nobody but root may add a record beside a seat that is root. A read-only one is closed already.
fn tighten(database: &str) -> Result<(), String> {
    let mode = match std::fs::metadata(database) {
        Ok(found) => found.permissions().mode(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(format!("{database}: {e}")),
    };
    if mode & 0o022 == 0 {
        return Ok(());
    }
    match std::fs::set_permissions(database, Permissions::from_mode(mode & 0o7755)) {
        Err(e) if e.kind() != io::ErrorKind::ReadOnlyFilesystem => Err(format!("{database}: {e}")),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes sshd's own key, anew like the folder that it is in. In this process: `ssh-keygen` wants a passwd
/// record, and on a busy node it was late, for the seat's whole life.
fn host_key(runtime: &Runtime) -> Result<PublicKey, String> {
    let words = |e: ssh_key::Error| e.to_string();
    let mut private = PrivateKey::random(&mut OsRng, Algorithm::Ed25519).map_err(words)?;
    private.set_comment("podbench");
    let public = private.public_key().to_openssh().map_err(words)?;
    write(runtime, file::HOST_KEY, &private.to_openssh(LineEnding::LF).map_err(words)?)?;
    write(runtime, &format!("{}.pub", file::HOST_KEY), &format!("{public}\n"))?;
    parse_key(&public)
}

fn parse_key(line: &str) -> Result<PublicKey, String> {
    PublicKey::parse(line).map_err(|e| e.to_string())
}

/// The one key that the spec hands over. What an earlier agent left isn't taken along.
fn authorized_keys(raw: Option<&str>) -> Result<String, String> {
    let name = podbench_contract::env::PUBKEY.name;
    let raw = raw.ok_or_else(|| format!("{name} isn't set: nobody may log in yet"))?;
    parse_key(raw).map(|key| format!("{key}\n")).map_err(|why| format!("{name}: {why}"))
}

fn sshd_config(uid: Uid, runtime: &Runtime, overlay: &[(String, String)], state: &mut State) {
    let Some(login) = state.login.name.clone() else {
        state.fail("sshd-config", "there is no login to let in");
        return;
    };
    let mut env = settings::session();
    env.extend_from_slice(overlay);
    match temporary(runtime) {
        Ok(dir) => env.extend(dir.map(|dir| ("TMPDIR".to_owned(), dir))),
        Err(why) => state.fail("tmp", why),
    }
    let plan = sshd::Plan { login: &login, root: uid.is_root(), runtime: runtime.dir(), env: &env };
    match write(runtime, file::SSHD_CONFIG, &sshd::config(&plan)) {
        Ok(()) => state.sshd.config = runtime.path(file::SSHD_CONFIG),
        Err(why) => state.fail("sshd-config", why),
    }
}

/// Where a session may put temporary files, if that isn't `/tmp`: with a read-only root it can't be.
fn temporary(runtime: &Runtime) -> Result<Option<String>, String> {
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    if rustix::fs::access("/tmp", access).is_ok() {
        return Ok(None);
    }
    let dir = runtime.path("tmp");
    match DirBuilder::new().mode(0o700).create(&dir) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(format!("{dir}: {e}")),
        Ok(()) | Err(_) => Ok(Some(dir)),
    }
}

/// An editor's server must not watch or search a `/proc` that holds the target's whole root.
fn editor_settings(home: &str) -> Result<(), String> {
    const CONTENT: &str = r#"{
  "files.watcherExclude": { "/proc/**": true, "/sys/**": true },
  "search.exclude": { "/proc/**": true, "/sys/**": true },
  "search.followSymlinks": false
}
"#;
    let dir = format!("{home}/.vscode-server/data/Machine");
    let path = format!("{dir}/settings.json");
    if home.is_empty() || Path::new(&path).exists() {
        return Ok(());
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
    made.and_then(|()| runtime::write_whole(&path, CONTENT, 0o600)).map_err(|e| format!("{path}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1p me@laptop";

    #[test]
    fn only_the_key_that_was_handed_over_may_log_in() {
        assert_eq!(authorized_keys(Some(KEY)).unwrap(), format!("{KEY}\n"));
        assert!(authorized_keys(None).unwrap_err().contains("isn't set"));
        assert!(authorized_keys(Some(&format!("command=\"x\" {KEY}"))).is_err());
        assert!(authorized_keys(Some(&format!("{KEY}\n{KEY}"))).is_err());
    }

    #[test]
    fn an_open_database_is_closed_and_an_absent_one_is_fine() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("passwd");
        let name = path.to_str().unwrap();
        assert_eq!(tighten(name), Ok(()));
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        tighten(name).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    }

    #[test]
    fn an_editors_settings_are_written_once_and_never_over_the_users_own() {
        let tmp = tempfile::tempdir().unwrap();
        let home = tmp.path().to_str().unwrap();
        editor_settings(home).unwrap();
        let path = tmp.path().join(".vscode-server/data/Machine/settings.json");
        let written: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(written["files.watcherExclude"]["/proc/**"], true);
        std::fs::write(&path, "mine").unwrap();
        editor_settings(home).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn a_failed_step_is_recorded_and_the_next_one_runs() {
        let mut state = State::default();
        step(&mut state, "one", Err("no".into()));
        step(&mut state, "two", Ok(()));
        step(&mut state, "three", Err("neither".into()));
        let steps: Vec<&str> = state.failures.iter().map(|f| f.step.as_str()).collect();
        assert_eq!(steps, ["one", "three"]);
    }
}
