//! The report: a JSON value, and the text that is rendered from that value and from nothing else.
//!
//! - [`attach`]: the value, field by field
//! - [`supports`] and [`warnings`]: its rows and lines that follow from a measurement
//! - [`text`]: the value as a person reads it
//! - [`failure`]: an error as a person or a program reads it
//! - [`style`]: columns, wrapping, colour

pub mod attach;
pub mod failure;
pub mod style;
pub mod supports;
pub mod text;
pub mod warnings;
