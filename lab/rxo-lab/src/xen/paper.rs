//! The paper's values.

use super::system::System;

/// Frames that its poll had, as LRO's packets an aggregate show.
pub(super) const FRAMES_A_POLL: f64 = 2.55;
/// The same on their earlier machine (Table I).
pub(super) const EARLIER_FRAMES_A_POLL: f64 = 2.65;
/// The hold of an aggregate's first two segments under Delayed Aggregation, in microseconds: two frame
/// times.
pub(super) const HOLD_US: f64 = 33.17;

/// Table V: cycles a byte in the driver domain.
pub(super) const fn driver_cycles(system: System) -> Option<f64> {
    match system {
        System::Xen => Some(14.5),
        System::Lro => Some(13.4),
        System::Bo => Some(13.0),
        System::Da => Some(3.3),
        _ => None,
    }
}

/// Table V: cycles a byte in the guest.
pub(super) const fn guest_cycles(system: System) -> Option<f64> {
    match system {
        System::Xen => Some(8.7),
        System::Lro => Some(7.1),
        System::Bo => Some(7.7),
        System::Da => Some(5.9),
        _ => None,
    }
}

/// Table V: cycles a byte, of both together.
pub(super) const fn total_cycles(system: System) -> Option<f64> {
    match system {
        System::Linux => Some(17.5),
        System::Xen => Some(23.2),
        System::Lro | System::Bo => Some(20.6),
        System::Da => Some(9.2),
        _ => None,
    }
}

/// Table IV: Mbit/s.
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

/// Table I, their earlier machine: Mbit/s.
pub(super) const fn earlier_mbit_per_s(system: System) -> Option<f64> {
    match system {
        System::Linux => Some(715.1),
        System::Xen => Some(569.0),
        System::Lro => Some(606.0),
        _ => None,
    }
}

/// Linux in Table IV, to which what is derived is scaled.
pub(super) const LINUX_MBIT_PER_S: f64 = 721.1;
/// What a gigabit link carries of payload.
pub(super) const LINK_MBIT_PER_S: f64 = 941.0;

/// Table VI: packets an aggregate.
pub(super) const fn packets_an_aggregate(system: System) -> Option<f64> {
    match system {
        System::Linux | System::Xen => Some(1.0),
        System::Lro => Some(2.55),
        System::Da => Some(4.71),
        _ => None,
    }
}

/// Table I, their earlier machine: packets an aggregate.
pub(super) const fn earlier_packets_an_aggregate(system: System) -> Option<f64> {
    match system {
        System::Lro => Some(2.65),
        _ => None,
    }
}

/// Table VII: transactions a second.
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
