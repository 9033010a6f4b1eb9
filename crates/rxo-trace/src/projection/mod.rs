//! What coalescing would save at other rates: a model, not a measurement.
//!
//! Receiving costs a host something for every packet its stack handles and something for every
//! byte, and something to take each packet from the device. Coalescing leaves bytes and device, divides the packets by what it puts together, and costs
//! something itself for every packet that came. For a packet of mean size this is `x + y/k`
//! (Menon & Zwaenepoel 2008, section 5.2): `x` what coalescing cannot change (bytes, device,
//! and coalescing itself), `y` what the stack does for a packet, `k` packets per delivery. How many
//! packets there are at a rate follows from their mean size; that is how the RSC paper (2006,
//! section 6) goes from its 1 Gbit/s to faster networks.
//!
//! Pure: costs come from `rxo calibrate` or from the user, mean size and `k` from a study. What the
//! model leaves out: memory bandwidth, caches that more connections fill, and that a larger `k`
//! comes with a higher rate.

mod costs;
mod fit;
mod model;

pub use costs::{ASSUMED_FROM, Costs, CostsError};
pub use fit::{Fit, Observation};
pub use model::{Point, Projection, Step};
