//! podbench
fn main() {}
