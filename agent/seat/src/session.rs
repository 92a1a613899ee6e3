//! What `kubectl exec` runs for one ssh connection: hands its three descriptors to the agent, which
//! runs sshd on them, and carries sshd's exit code. Writes no byte to stdout, ever.
//!
//! sshd's parent is then the agent, so what sshd or an editor leaves behind is reaped there. A
//! process of a direct exec leaves its orphans to PID 1, which is the application and reaps nothing.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use podbench_contract::exit;
use podbench_contract::session::{Request, TAKE_LIMIT_MS, file, sshd_argv};

use crate::agent::identity;
use crate::agent::protocol::Reply;
use crate::client::Client;
use crate::runtime::Runtime;
use crate::{exec, out};

/// sshd's exit code for a connection that was closed, by either side and for any reason.
const SSHD_HUNG_UP: u8 = 255;

/// `podbench session`.
pub(crate) fn run() -> u8 {
    let why = match hand_over() {
        Ok(code) => return code,
        Err(why) => why,
    };
    out::note(&format!("the agent doesn't take this session ({why}); running sshd itself"));
    match Runtime::configured() {
        Some(runtime) => {
            let argv = sshd_argv(&runtime.path(file::SSHD_CONFIG));
            exec::replace(&argv, &identity::overlay_env(&runtime))
        }
        None => {
            out::note("there is no sshd configuration in this seat: podbench measure says why");
            exit::FAILED
        }
    }
}

/// The exit code of the session, or why the agent didn't take it.
fn hand_over() -> Result<u8, String> {
    let limit = Duration::from_millis(TAKE_LIMIT_MS);
    let deadline = Instant::now() + limit;
    let mut client = Client::connect(limit).map_err(|e| e.to_string())?;
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    client
        .send(&Request::Session, &[stdin.as_fd(), stdout.as_fd(), stderr.as_fd()])
        .map_err(|e| e.to_string())?;
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let answer = client.reply(Some(left)).or_else(|e| {
        // From here the agent can't take it any more; what it said before that still counts, or
        // two sshds would talk on one stream.
        client.give_up();
        client.reply(Some(Duration::from_millis(1))).map_err(|_| e)
    });
    match answer {
        Ok(Reply::Taken) => {}
        Ok(Reply::Refused(why)) => return Err(why),
        Ok(Reply::Hello | Reply::Done | Reply::Exit(_) | Reply::Stopped { .. }) => {
            return Err("a wrong answer".to_owned());
        }
        Err(e) => return Err(e.to_string()),
    }
    // Only now: the agent looks at our mount namespace first, which it couldn't of a process that
    // isn't dumpable.
    let _ = nix::sys::prctl::set_dumpable(false);
    Ok(match client.reply(None) {
        // sshd ends with 255 whenever the client hangs up, which is how every connection ends; kubectl
        // would say so on the user's terminal. What went wrong before that, sshd has said itself.
        Ok(Reply::Exit(SSHD_HUNG_UP)) => exit::OK,
        Ok(Reply::Exit(code)) => code,
        Ok(Reply::Hello | Reply::Taken | Reply::Refused(_) | Reply::Done | Reply::Stopped { .. })
        | Err(_) => exit::LOST,
    })
}
