//! The seat's first process: makes what sshd needs, then carries sessions, reaps, and sleeps.
//!
//! It is not PID 1 of its PID namespace: that is the application, which is neither signalled nor
//! waited for. No failed step ends it; half a seat is worth having, and its container name can't
//! be used again.

pub(crate) mod check;
mod ensure;
pub(crate) mod identity;
mod members;
mod peer;
pub(crate) mod print;
pub(crate) mod protocol;
mod requests;
mod server;
mod sessions;
pub(crate) mod stop;

use podbench_contract::exit;

use crate::client::Client;
use crate::out;
use crate::runtime::Runtime;
use protocol::State;

/// `podbench agent`.
pub(crate) fn run() -> u8 {
    if Client::answers() {
        out::note("this seat has its agent already");
        return exit::USAGE;
    }
    // Before anything is started: whatever is orphaned below this process comes to it.
    let subreaper = nix::sys::prctl::set_child_subreaper(true);
    // A seat at the target's ids is the application's peer, which could read and trace it otherwise.
    let undumpable = nix::sys::prctl::set_dumpable(false);
    // From here a signal waits in its queue until the loop asks for it: none ends the agent halfway.
    let signals = server::block_signals();
    let mut state = State { version: env!("CARGO_PKG_VERSION").to_owned(), ..State::default() };
    for (step, done) in [("subreaper", subreaper), ("dumpable", undumpable)] {
        if let Err(e) = done {
            state.fail(step, e);
        }
    }
    let runtime = Runtime::create();
    // Listening comes first: who connects while the steps run is answered when they are done.
    let listener = match &runtime {
        Ok(runtime) => match server::listen(runtime) {
            Ok(listener) => Some(listener),
            Err(e) => {
                state.fail("socket", e);
                None
            }
        },
        Err(why) => {
            state.fail("runtime", why);
            None
        }
    };
    let seat = ensure::run(runtime.ok(), &mut state);
    match signals {
        Ok(signals) => server::Server::new(seat, state, listener, signals).run(),
        Err(e) => {
            // Without the descriptor there is no loop; the seat is still worth a kubectl exec.
            out::note(&format!("signals: {e}"));
            loop {
                std::thread::park();
            }
        }
    }
}
