//! The report: a JSON value, and the text that is rendered from that value and from nothing else.
//!
//! - [`attach`]: the value, field by field
//! - [`supports`] and [`warnings`]: its rows and lines that follow from a measurement
//! - [`text`]: the value as a person reads it
//! - [`failure`]: an error as a person or a program reads it
//! - [`seats`]: a seat as [`list`] and [`status`] show it
//! - [`undo`]: `detach` and `clean`
//! - `table`, [`style`]: columns, wrapping, colour
//! - `time`: how long ago

pub mod attach;
pub mod failure;
pub mod list;
pub mod seats;
pub mod status;
pub mod style;
pub mod supports;
pub mod text;
pub mod undo;
pub mod warnings;

pub(crate) mod table;
pub(crate) mod time;
