//! (in preparation)
fn main() {}
