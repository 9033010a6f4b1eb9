//! The fast path against the ordinary way: the same bytes on the wire, whichever is on.

mod checks;
mod held;
mod modules;
mod tapped;
mod twins;
