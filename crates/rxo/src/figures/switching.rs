//! Figures of the switch between a nic and guests, as numbers and as text.

use std::collections::BTreeMap;

use rxo_console::numbers::grouped;
use serde::Serialize;

use super::occurred;
use crate::switch::{DropReason, SwitchCounters};

/// The figures of switching in an interval, or in a whole run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Switching {
    /// The number of frames that were forwarded to the port of a known address.
    pub forwarded: u64,
    /// The number of frames to a group or an unknown address, which were forwarded to several ports; each frame counts
    /// once.
    pub flooded: u64,
    /// The number of addresses that were learned, including those learned again after they had expired.
    pub learned: u64,
    /// The number of times that an address appeared at another port than before.
    pub moved: u64,
    /// The number of frames whose source address was not learned, because their port already had its maximum
    /// number of addresses.
    pub not_learned: u64,
    /// The number of frames that were dropped, by reason; reasons that did not occur are left out.
    pub dropped: BTreeMap<&'static str, u64>,
}

impl Switching {
    pub(super) fn new(counters: &SwitchCounters) -> Self {
        let SwitchCounters { forwarded, flooded, learned, moved, not_learned, .. } = *counters;
        let dropped = DropReason::ALL.iter().map(|&why| (why.name(), counters.dropped(why)));
        Self { forwarded, flooded, learned, moved, not_learned, dropped: occurred(dropped) }
    }

    /// Returns the line about the switch in the totals. `dropped` lists the reasons for drops, already formatted.
    pub(super) fn totals(&self, dropped: &str) -> String {
        let Self { forwarded, flooded, learned, moved, not_learned, .. } = self;
        format!(
            "{} frames forwarded, {} flooded; {} addresses learned, {} moved, {} not learned; \
             dropped {dropped}",
            grouped(*forwarded),
            grouped(*flooded),
            grouped(*learned),
            grouped(*moved),
            grouped(*not_learned),
        )
    }
}

#[cfg(test)]
mod tests {
    use rxo_frame::{Frame, Instant};

    use crate::figures::{Figures, Readings};
    use crate::switch::{MacAddress, Port, PortSettings, Switch, SwitchOptions, Vlans};

    /// A guest whose option `mac=` is wrong.
    #[test]
    fn a_guest_with_another_address_is_counted_by_reason() {
        let port = |fixed| PortSettings { vlans: Vlans::Only(0), fixed };
        let ports = vec![port(None), port(Some(MacAddress([2, 0, 0, 0, 0, 1])))];
        let mut switch = Switch::new(ports, SwitchOptions::default()).unwrap();
        let mut bytes = [0xff; 60];
        bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        let frame = Frame::new(bytes, Instant::ZERO);
        for port in [Port::new(0), Port::new(1), Port::new(1)] {
            switch.forward(port, &frame, Instant::ZERO);
        }
        let readings = Readings { switch: Some(*switch.counters()), ..Readings::default() };
        let figures = Figures::totals(&readings, &[]);
        let switching = figures.switch.unwrap();
        assert_eq!((switching.flooded, switching.learned), (1, 1), "that of the nic");
        assert_eq!(switching.dropped, [("foreign_source", 2)].into());
        assert!(Figures::totals(&Readings::default(), &[]).switch.is_none(), "there is no switch");
    }
}
