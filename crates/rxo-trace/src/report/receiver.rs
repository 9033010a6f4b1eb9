//! A receiving address: its share of the traffic, and the effect of coalescing on it.

use serde::Serialize;

/// The effect of coalescing on the packets that one address receives, for the chosen policy and poll rule.
/// Only packets of TCP and UDP flows count.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Receiver {
    /// The receiving address; both addresses of a host with IPv4 and IPv6.
    pub address: String,
    /// `true` if the capture was taken on the host with this address.
    pub is_host: bool,
    /// The number of packets that the address receives.
    pub packets: u64,
    /// The number of bytes on the wire that the address receives, link-layer headers included.
    pub bytes: u64,
    /// The number of deliveries to the stack of the address.
    pub deliveries: u64,
    /// The share of the received packets that never reach the stack, from 0 to 1.
    pub fewer_packets: f64,
    /// The number of cores that are busy with receiving at the capture's mean rate without coalescing; `None`
    /// if the capture has no rate.
    pub cores_without: Option<f64>,
    /// The number of cores that are busy with receiving with coalescing; `None` if `cores_without` is.
    pub cores_with: Option<f64>,
}
