//! A seat: landed or reused, and what it measured.
//!
//! - [`land`]: rehearse, compare, write, wait
//! - [`follow`]: a pod's changes, however they can be had
//! - [`start`]: until the target runs
//! - [`wait`]: from stored to running
//! - [`reuse`]: which running seat is as good as a new one
//! - [`measure`]: one exec answers everything

pub mod follow;
pub mod land;
pub mod measure;
pub mod reuse;
pub mod start;
pub mod wait;
