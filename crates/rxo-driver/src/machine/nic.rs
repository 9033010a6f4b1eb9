//! Checks of an interface that do not depend on what a run would change.

use rxo_device::DeviceError;

use crate::handover::Link;
use crate::{DeviceName, Feature, Finding, Interface, fault};

pub(super) fn examine(device: &DeviceName) -> Result<Vec<Finding>, DeviceError> {
    let interface = Interface::find(device.name())?;
    let gone = || DeviceError::Gone(device.to_string());
    let link = Link::read(interface.index()?.unsigned_abs())?.ok_or_else(gone)?;
    let name = &link.name;
    let unknown = || "unknown".to_owned();
    let speed = interface.speed_mbit().map_or_else(unknown, |mbit| format!("{mbit} Mbit/s"));
    let driver = interface.driver().unwrap_or_else(unknown);
    let [receive, send] = interface.channels().unwrap_or(link.queues);
    let checksum = interface.feature(Feature::ReceiveChecksum).unwrap_or(false);
    Ok(vec![
        Finding::fine("driver", driver),
        state(device, &link),
        Finding::fine("speed", speed),
        Finding::fine("MTU", link.mtu.to_string()),
        Finding::fine("queues", format!("{receive} to receive, {send} to send")),
        gro(interface.feature(Feature::Gro).unwrap_or(false)),
        lro(name, interface.has_lro()),
        checksums(name, checksum),
    ])
}

fn state(device: &DeviceName, link: &Link) -> Finding {
    if link.is_up {
        return Finding::fine("state", "up");
    }
    fault::down(&device.to_string(), &link.name)
}

fn gro(is_on: bool) -> Finding {
    let found = if is_on { "on; rxo switches it off for the run" } else { "off" };
    Finding::fine("GRO", found)
}

fn lro(name: &str, is_on: bool) -> Finding {
    if !is_on {
        return Finding::fine("LRO", "off");
    }
    let remedy = format!(
        "the device coalesces by its own rules before rxo does; `ethtool -K {name} lro off`"
    );
    Finding::limited("LRO", "on", remedy)
}

fn checksums(name: &str, is_verified: bool) -> Finding {
    if is_verified {
        return Finding::fine("checksums", "verified by the device");
    }
    let remedy = format!(
        "rxo verifies each, which costs time; `ethtool -K {name} rx on` where the device can"
    );
    Finding::limited("checksums", "not verified by the device", remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn loopback_is_looked_at_whole() {
        let found = examine(&"packet:lo".parse().unwrap()).unwrap();
        let names: Vec<_> = found.iter().map(|one| one.name).collect();
        let all = ["driver", "state", "speed", "MTU", "queues", "GRO", "LRO", "checksums"];
        assert_eq!(names, all);
        assert!(examine(&"packet:rxo-nowhere".parse().unwrap()).is_err());
    }

    #[test]
    fn what_costs_has_a_remedy() {
        for one in [lro("eth1", true), checksums("eth1", false)] {
            assert!(one.state == State::Limited && one.remedy.contains("ethtool -K eth1"), "{one}");
        }
    }
}
