//! One end of a TCP connection on rxo's own stack: `rxo cat`, `rxo sink` and `rxo source`.
//!
//! The flags become an [`EndpointPlan`]; an [`Endpoint`] is a running host that connects or accepts until the
//! user requests its end.

mod open;
mod plan;

pub(crate) use self::open::{Endpoint, Opening, incomplete, is_timeout, wait_until_delivered};
pub(crate) use self::plan::EndpointPlan;
