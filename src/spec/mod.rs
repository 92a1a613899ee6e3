//! Authors of JSON, and readers of what the server made of it. Pure.
//!
//! - [`ephemeral`]: the seat's container
//! - [`security`]: its security context, one per rung
//! - [`image`]: its image where nobody names one
//! - [`mounts`]: which of the pod's volumes it sees
//! - [`patch`]: what a user adds to the container (`--spec-patch`)
//! - [`rewrite`]: requested against stored

pub mod ephemeral;
pub mod image;
pub mod mounts;
pub mod patch;
pub mod rewrite;
pub mod security;
