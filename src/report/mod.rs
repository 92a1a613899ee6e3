//! The report: a JSON value, and the text that is rendered from that value and from nothing else.

pub mod attach;
pub mod text;
