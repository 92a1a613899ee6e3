//! Exit codes of the in-pod verbs. The launcher's own are in its `error` module.

/// It worked.
pub const OK: u8 = 0;
/// podbench's own bug, or the seat's disk.
pub const FAILED: u8 = 1;
/// The input was wrong.
pub const USAGE: u8 = 2;
/// `capreport`: reads work, attaching doesn't.
pub const READ_ONLY: u8 = 10;
/// `capreport`: only a process that the debugger starts itself can be debugged.
pub const LAUNCH_ONLY: u8 = 15;
/// `capreport`: nothing works.
pub const NOTHING: u8 = 20;
/// `session`: the agent went away under a running session. ssh's own code for a lost transport.
pub const LOST: u8 = 255;
