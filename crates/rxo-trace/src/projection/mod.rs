//! Projects the savings of coalescing to other rates: a model, not a measurement.
//!
//! Receiving has three costs for a host: a cost for every packet that its stack handles, a cost for every byte,
//! and a cost for receiving each packet from the device. Coalescing does not change the costs of bytes and
//! device. It divides the cost of packets by the number of packets in an aggregate, and has a cost of its own
//! for every received packet. For a packet of mean size this is `x + y/k` (Menon & Zwaenepoel 2008, section
//! 5.2): `x` is the part that coalescing cannot change (bytes, device, and coalescing itself), `y` is the
//! stack's cost of a packet, and `k` is the number of packets per delivery. The number of packets at a rate
//! follows from their mean size. The RSC paper (2006, section 6) extrapolates from its 1 Gbit/s to faster
//! networks in the same way.
//!
//! The computation has no side effects: the costs come from `rxo calibrate` or from the user, and the mean size
//! and `k` come from a study. The model ignores memory bandwidth, the cache space of further connections, and
//! the growth of `k` with the rate.

mod costs;
mod fit;
mod given;
mod model;

pub use costs::{ASSUMED_FROM, Costs, CostsError};
pub use fit::{Fit, Observation};
pub use given::Given;
pub use model::{Point, Projection, Step};
