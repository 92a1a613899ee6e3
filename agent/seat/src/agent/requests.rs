//! What the agent does for a request. The peer was looked at before it could ask.

use std::os::fd::OwnedFd;
use std::time::Instant;

use podbench_contract::exit;
use podbench_contract::keys::PublicKey;
use podbench_contract::session::{Request, file, sshd_argv};
use rustix::event::PollFlags;

use super::protocol::{Reply, State};
use super::server::Server;
use super::sessions::{Connection, Ending, Heard, Phase};
use crate::exec::{Program, spawn_on};
use crate::out;

/// More keys than this are no longer a person's laptops.
const KEYS: usize = 64;
impl Server {
    /// Moves one connection on; answers whether it stays.
    pub(super) fn step(&mut self, connection: &mut Connection, flags: PollFlags) -> bool {
        match connection.phase {
            Phase::Asking { .. } => match connection.hear() {
                Heard::More => !flags.contains(PollFlags::ERR),
                Heard::Gone => false,
                Heard::Nonsense => {
                    let _ = connection.reply(&Reply::Refused("not a request".to_owned()));
                    false
                }
                Heard::Request(request, fds) => self.handle(connection, request, fds),
            },
            Phase::Session { pid } => {
                self.endings.push(Ending::new(pid, Instant::now()));
                false
            }
            Phase::AwaitingState | Phase::AwaitingStop => false,
        }
    }

    fn handle(&mut self, connection: &mut Connection, request: Request, fds: Vec<OwnedFd>) -> bool {
        match request {
            Request::Session => self.start_session(connection, fds),
            Request::State if self.check.is_some() => {
                connection.phase = Phase::AwaitingState;
                true
            }
            Request::State => {
                let _ = connection.answer(&self.state_line());
                false
            }
            Request::Authorize(key) => {
                let reply = self.authorize(&key).map_or_else(Reply::Refused, |()| Reply::Done);
                let _ = connection.reply(&reply);
                false
            }
            Request::Stop => {
                connection.phase = Phase::AwaitingStop;
                self.begin_stop(Some(connection.peer.pid));
                true
            }
        }
    }

    fn start_session(&self, connection: &mut Connection, fds: Vec<OwnedFd>) -> bool {
        let refuse = |connection: &mut Connection, why: &str| {
            let _ = connection.reply(&Reply::Refused(why.to_owned()));
            false
        };
        let Ok(fds) = <[OwnedFd; 3]>::try_from(fds) else {
            return refuse(connection, "a session comes with three descriptors");
        };
        if self.state.sshd.config.is_empty() || self.stop.is_some() {
            return refuse(connection, "this seat has no sshd to start");
        }
        // Said before it is done: a client that gave up meanwhile runs sshd itself, and two of them
        // must never talk on one stream.
        if connection.reply(&Reply::Taken).is_err() {
            return false;
        }
        let sshd = Program::from_argv(sshd_argv(&self.state.sshd.config)).with_env(&self.seat.overlay);
        match spawn_on(&sshd, fds) {
            Ok(pid) => {
                connection.phase = Phase::Session { pid };
                true
            }
            Err(e) => {
                out::note(&format!("a session couldn't be started: {e}"));
                let _ = connection.reply(&Reply::Exit(exit::FAILED));
                false
            }
        }
    }

    fn authorize(&self, key: &PublicKey) -> Result<(), String> {
        let runtime = self.seat.runtime.as_ref().ok_or("this seat has no runtime folder")?;
        let known = runtime.read(file::AUTHORIZED_KEYS).unwrap_or_default();
        match add_key(&known, key)? {
            None => Ok(()),
            Some(text) => runtime.write(file::AUTHORIZED_KEYS, &text).map_err(|e| e.to_string()),
        }
    }

    pub(super) fn state_line(&self) -> String {
        let open = self.connections.iter().filter(|c| matches!(c.phase, Phase::Session { .. })).count();
        let state = State { sessions: u32::try_from(open).ok(), ..self.state.clone() };
        serde_json::to_string(&state).unwrap_or_default() + "\n"
    }
}

/// The keys with one more; `None` where it is there already.
fn add_key(known: &str, key: &PublicKey) -> Result<Option<String>, String> {
    let bare = key.bare();
    let has = |line: &str| PublicKey::parse(line).is_ok_and(|k| k.bare() == bare);
    if known.lines().any(has) {
        return Ok(None);
    }
    if known.lines().count() >= KEYS {
        return Err(format!("{KEYS} keys may log in already"));
    }
    Ok(Some(format!("{known}{key}\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1p";

    #[test]
    fn a_second_key_is_added_once_whatever_its_comment() {
        let key = PublicKey::parse(&format!("{KEY} one")).unwrap();
        let text = add_key("", &key).unwrap().unwrap();
        assert_eq!(text, format!("{KEY} one\n"));
        let same = PublicKey::parse(&format!("{KEY} another name")).unwrap();
        assert_eq!(add_key(&text, &same), Ok(None));
    }

    #[test]
    fn keys_do_not_grow_without_end() {
        let key = PublicKey::parse(KEY).unwrap();
        let many = "ssh-ed25519 x\n".repeat(KEYS);
        assert!(add_key(&many, &key).is_err());
    }
}
