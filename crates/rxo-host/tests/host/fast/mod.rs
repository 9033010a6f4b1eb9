//! The fast path compared with the slow path: both send the same bytes.

mod checks;
mod held;
mod modules;
mod tapped;
mod twins;
