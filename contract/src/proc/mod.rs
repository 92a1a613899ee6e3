//! Parsers of `/proc` text. They take `&str` and never panic: a process writes its own name and
//! command line, and a kernel may add a field.

mod cgroup;
mod status;
mod targets;

pub use cgroup::{container_id, has_any_id, mentions};
pub use status::{Status, argv};
pub use targets::{Choice, Seen, choose};
