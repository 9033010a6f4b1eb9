//! One end of a TCP connection on rxo's own stack, for the commands that are one: `rxo cat`, `rxo sink`,
//! `rxo source`.
//!
//! [`EndpointPlan`] is what the flags mean; [`Endpoint`] is a host that runs, and opens connections in
//! either way until it is asked to stop.

mod open;
mod plan;

pub(crate) use self::open::{Endpoint, incomplete, is_wait, settle};
pub(crate) use self::plan::EndpointPlan;
