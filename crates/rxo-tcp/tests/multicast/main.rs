//! Tests of a group of receivers, each a story: a sender, receivers with connections of this crate, lossy
//! links, and virtual time.

mod costs;
mod dormant;
mod fair;
mod fates;
mod forged;
mod joins;
mod late;
mod links;
mod loss;
mod parity;
mod receivers;
mod room;
mod script;
mod settings;
mod silent;
mod slow;
mod unicasts;
mod whole;
#[path = "../harness/wire.rs"]
mod wire;
