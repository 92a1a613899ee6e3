//! A seat: landed or reused, and what it measured.
//!
//! - [`inventory`]: the seats that a pod has
//! - [`land`]: rehearse, compare, write, wait
//! - [`conflict`]: a write that lost a race
//! - [`follow`]: a pod's changes, however they can be had
//! - [`start`]: until the target runs
//! - [`wait`]: from stored to running
//! - [`reuse`]: which running seat is as good as a new one
//! - [`measure`]: one exec answers everything
//! - [`stop`]: asked to end, and waited for

pub mod conflict;
pub mod follow;
pub mod inventory;
pub mod land;
pub mod measure;
pub mod reuse;
pub mod start;
pub mod stop;
pub mod wait;
