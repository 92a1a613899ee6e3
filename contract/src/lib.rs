//! What the launcher and the in-pod programs agree on, each fact once.
//!
//! Pure: no files, environment, processes or clock (clippy.toml forbids them). Whoever reads
//! `/proc`, an environment or a reply hands the text in.
//!
//! - [`ids`]: uid, gid, container id, seat name
//! - [`rung`]: what a seat may do: full, degraded, seat
//! - [`mod@env`]: the environment of a seat, written by one side and read by the other
//! - [`keys`]: OpenSSH public keys, the only ones either side accepts
//! - [`text`]: what text out of a pod must look like before anyone uses it
//! - [`reading`]: a fact that was read, denied or not tried
//! - [`measurement`]: the wire: everything `podbench measure` answers
//! - [`debugger`]: the debuggers that a seat may have, and how each is called
//! - [`quantity`], [`resized`]: amounts as Kubernetes spells them, and what `--resize` changed
//! - [`frame`]: the envelope that makes a truncated reply an error
//! - [`proc`]: parsers of `/proc` text, and whose process is the target
//! - [`oracle`]: from readings to a verdict and a blocker
//! - [`session`]: paths and argvs in a seat, the agent's socket protocol
//! - [`sshd`]: the sshd configuration of a seat
//! - [`exit`]: exit codes

pub mod debugger;
pub mod env;
pub mod exit;
pub mod frame;
pub mod ids;
pub mod keys;
pub mod measurement;
pub mod oracle;
pub mod proc;
pub mod quantity;
pub mod reading;
pub mod resized;
pub mod rung;
pub mod session;
pub mod sshd;
pub mod text;
