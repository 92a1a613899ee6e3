//! The first process of a seat, and the verbs inside it. Linux, static, no unsafe.

fn main() {}
