//! The paper's values.

use super::system::System;

/// Frames per poll in the paper, derived from LRO's packets per aggregate.
pub(super) const FRAMES_A_POLL: f64 = 2.55;
/// Frames per poll on the paper's earlier machine (Table I).
pub(super) const EARLIER_FRAMES_A_POLL: f64 = 2.65;

/// Returns the cycles per byte in the driver domain (Table V); `None` if the paper has no value.
pub(super) const fn driver_cycles(system: System) -> Option<f64> {
    match system {
        System::Xen => Some(14.5),
        System::Lro => Some(13.4),
        System::Bo => Some(13.0),
        System::Da => Some(3.3),
        _ => None,
    }
}

/// Returns the cycles per byte in the guest (Table V); `None` if the paper has no value.
pub(super) const fn guest_cycles(system: System) -> Option<f64> {
    match system {
        System::Xen => Some(8.7),
        System::Lro => Some(7.1),
        System::Bo => Some(7.7),
        System::Da => Some(5.9),
        _ => None,
    }
}

/// Returns the cycles per byte of driver domain and guest together (Table V); `None` if the paper has no
/// value.
pub(super) const fn total_cycles(system: System) -> Option<f64> {
    match system {
        System::Linux => Some(17.5),
        System::Xen => Some(23.2),
        System::Lro | System::Bo => Some(20.6),
        System::Da => Some(9.2),
        _ => None,
    }
}

/// Returns the rate in Mbit/s (Table IV); `None` if the paper has no value.
pub(super) const fn mbit_per_s(system: System) -> Option<f64> {
    match system {
        System::Linux => Some(LINUX_MBIT_PER_S),
        System::Xen => Some(535.9),
        System::Lro => Some(577.2),
        System::Bo => Some(576.5),
        System::Da => Some(747.5),
        _ => None,
    }
}

/// Returns the rate on the earlier machine in Mbit/s (Table I); `None` if the paper has no value.
pub(super) const fn earlier_mbit_per_s(system: System) -> Option<f64> {
    match system {
        System::Linux => Some(715.1),
        System::Xen => Some(569.0),
        System::Lro => Some(606.0),
        _ => None,
    }
}

/// Rate of Linux in Table IV, to which derived rates are scaled.
pub(super) const LINUX_MBIT_PER_S: f64 = 721.1;
/// Payload rate of a gigabit link.
pub(super) const LINK_MBIT_PER_S: f64 = 941.0;

/// Returns the packets per aggregate (Table VI); `None` if the paper has no value.
pub(super) const fn packets_an_aggregate(system: System) -> Option<f64> {
    match system {
        System::Linux | System::Xen => Some(1.0),
        System::Lro => Some(2.55),
        System::Da => Some(4.71),
        _ => None,
    }
}

/// Returns the packets per aggregate on the earlier machine (Table I); `None` if the paper has no value.
pub(super) const fn earlier_packets_an_aggregate(system: System) -> Option<f64> {
    match system {
        System::Lro => Some(2.65),
        _ => None,
    }
}

/// Returns the transactions per second (Table VII); `None` if the paper has no value.
pub(super) const fn transactions(system: System) -> Option<f64> {
    match system {
        System::Linux => Some(6_090.0),
        System::Xen => Some(5_036.0),
        System::Lro => Some(5_010.0),
        System::Bo => Some(4_999.0),
        System::Da => Some(5_015.0),
        _ => None,
    }
}
