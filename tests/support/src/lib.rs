//! What the tests share: processes with a deadline, guards for objects of the live cluster, a
//! person with a home and a key.
//!
//! A helper that can't do its work panics with what it saw: a test that needs a cluster fails
//! without one, it never passes by returning.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, clippy::indexing_slicing)]

pub mod cluster;
pub mod connect;
pub mod namespace;
pub mod person;
pub mod pods;
pub mod policy;
pub mod process;
pub mod proxy;
mod proxy_lane;
mod proxy_pipe;
pub mod recording;
pub mod server;
