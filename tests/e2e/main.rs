//! Live tests: each shows a thing a user would notice, on a real cluster, as a service account that
//! has the chart's observe Role and nothing else. `./dev test live` starts what they need.
#![allow(clippy::disallowed_methods, reason = "tests start programs and read the environment")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs, unreachable_pub)]

mod admission;
mod background;
mod channels;
mod choice;
mod client;
mod clusters;
mod config;
mod copy;
mod correct;
mod dbg;
mod golden;
mod hostile;
mod input;
mod kubeconfig;
mod lossy;
mod measure;
mod patch;
mod probes;
mod prompt;
mod proxies;
mod ptrace;
mod race;
mod reconnect;
mod resize;
mod serial;
mod sshd;
mod startup;
mod terminal;
mod transport;
mod undo;
mod vm_node;
mod wait_start;
mod world;
