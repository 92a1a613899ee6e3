//! podbench, on the user's machine: it reaches the cluster through `kubectl` and nothing else.
//!
//! The modules in the order in which `podbench attach` uses them:
//!
//! - [`cli`]: the command line, which is the help
//! - [`settings`]: the environment, home, terminal: read here and nowhere else
//! - [`error`]: what a person is told when something says no, and the exit code
//! - [`commands`]: one file a verb; `attach` reads like docs/attach-flow.md
//! - [`kubectl`]: calls, their runner, what a refusal means, the transcript
//! - [`pod`]: typed views over a pod's JSON
//! - [`spec`]: authors of JSON: the seat's container, its security context; requested against stored
//! - [`resize`]: the target's memory and processor time, changed in place and given back
//! - [`ladder`]: outcome in, next step out
//! - [`seat`]: a landed or reused seat, and what it measured
//! - [`ssh`]: keys, stanza, known_hosts
//! - [`report`]: the JSON value, and the text rendered from it
//! - [`shell`]: a word that any shell reads as it was meant
//! - [`ui`]: colour, width, progress, prompts

pub mod cli;
pub mod commands;
pub mod error;
pub mod kubectl;
pub mod ladder;
pub mod pod;
pub mod report;
pub mod resize;
pub mod seat;
pub mod settings;
pub mod shell;
pub mod spec;
pub mod ssh;
pub mod ui;
