//! A seat: landed or reused, and what it measured.
//!
//! - [`inventory`]: the seats that a pod has
//! - [`land`]: rehearse, compare, write, wait
//! - [`wait`]: from stored to running
//! - [`reuse`]: which running seat is as good as a new one
//! - [`measure`]: one exec answers everything
//! - [`stop`]: asked to end, and waited for

pub mod inventory;
pub mod land;
pub mod measure;
pub mod reuse;
pub mod stop;
pub mod wait;
