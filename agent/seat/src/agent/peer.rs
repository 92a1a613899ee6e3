//! Who is at the other end of the socket: only this seat's own processes are listened to.
//!
//! The runtime folder is closed to other users, but a degraded seat's application has the seat's
//! own ids and can reach the socket through `/proc/PID/root` of a shell. Its mount namespace is
//! another one, and that can't be borrowed.

use std::os::fd::AsFd;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use podbench_contract::ids::Uid;

use crate::proc;
use crate::runtime::own_uid;

/// A peer that may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Its pid in our PID namespace.
    pub(crate) pid: u32,
}

/// Looks at the peer; what it may not be is the reason to refuse it.
pub(crate) fn admit(socket: impl AsFd, own_namespace: u64) -> Result<Peer, String> {
    // nix and not rustix, whose pid type can't hold the 0 that a peer of another PID namespace has.
    let peer = getsockopt(&socket, PeerCredentials).map_err(|e| format!("the peer can't be told: {e}"))?;
    let uid = Uid(peer.uid());
    if uid != own_uid() && !uid.is_root() {
        return Err(format!("uid {uid} isn't this seat's"));
    }
    let pid = match u32::try_from(peer.pid()) {
        Ok(pid) if pid != 0 => pid,
        Ok(_) | Err(_) => return Err("the caller is in another PID namespace".to_owned()),
    };
    match proc::mount_namespace(pid) {
        Ok(theirs) if theirs == own_namespace && own_namespace != 0 => Ok(Peer { pid }),
        Ok(_) => Err("the caller is in another container".to_owned()),
        Err(e) => Err(format!("the caller's mount namespace can't be read: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::runtime::own_mount_namespace;

    #[test]
    fn our_own_process_is_admitted_and_another_mount_namespace_is_not() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let own = own_mount_namespace();
        assert_eq!(admit(&ours, own), Ok(Peer { pid: std::process::id() }));
        assert!(admit(&ours, own + 1).unwrap_err().contains("another container"));
        assert!(admit(&ours, 0).is_err());
    }
}
