//! Joins and leaves channels, and builds the reports about them.

use std::net::{IpAddr, Ipv6Addr};

use rxo_frame::Instant;

use super::Link;
use super::frames::group_mac;
use super::groups::report::{Record, message};
use super::groups::{Channel, ChannelError, igmp, mld};

impl Link {
    /// Adds a member to `channel`. The first member is reported at once and again within a second
    /// ([`Link::poll_transmit`]). From then on, the gate admits segments from the channel's source to the
    /// channel's group.
    ///
    /// # Errors
    /// [`ChannelError::Full`] if 32 channels are joined, [`ChannelError::Version`] if the link has no address
    /// of the group's IP version.
    pub fn join(&mut self, channel: Channel, now: Instant) -> Result<(), ChannelError> {
        let is_same_version = |ip: IpAddr| ip.is_ipv4() == channel.group().is_ipv4();
        if !self.addresses().any(|cidr| is_same_version(cidr.address())) {
            return Err(ChannelError::Version { group: channel.group() });
        }
        let records = self.groups.join(channel, now)?;
        self.report(&records);
        Ok(())
    }

    /// Removes a member of `channel`. The end of the last membership is reported.
    pub fn leave(&mut self, channel: Channel, now: Instant) {
        let records = self.groups.leave(channel, now);
        self.gate.forget_last();
        self.report(&records);
    }

    /// Queues a report of `records`, which must be about groups of one IP version.
    pub(super) fn report(&mut self, records: &[Record]) {
        let Some(first) = records.first() else { return };
        self.counters.group_reports += 1;
        let frame = match first.group {
            IpAddr::V4(_) => self.igmp_report(records),
            IpAddr::V6(_) => self.mld_report(records),
        };
        self.push(frame);
    }

    /// Builds an IGMPv3 report (RFC 3376, sections 4 and 4.2). `None` if the host has no IPv4 address.
    fn igmp_report(&self, records: &[Record]) -> Option<Vec<u8>> {
        let source = self.addresses().find_map(|cidr| match cidr.address() {
            IpAddr::V4(ip) => Some(ip),
            IpAddr::V6(_) => None,
        })?;
        let to = group_mac(igmp::ALL_ROUTERS.into());
        let envelope = self.envelope(to, ROUTERS_HOP_LIMIT, INTERNETWORK_CONTROL);
        envelope.igmp(source, igmp::ALL_ROUTERS, &message(igmp::REPORT, records))
    }

    /// Builds an MLDv2 report (RFC 3810, section 5.2). Routers accept reports only from link-local addresses.
    /// Without a link-local address, as on links without Ethernet, the source is unspecified (section 5.2.13).
    fn mld_report(&self, records: &[Record]) -> Option<Vec<u8>> {
        let link_local = self.addresses().find_map(|cidr| match cidr.address() {
            IpAddr::V6(ip) if ip.is_unicast_link_local() => Some(ip),
            _ => None,
        });
        let source = link_local.unwrap_or(Ipv6Addr::UNSPECIFIED);
        let envelope = self.envelope(group_mac(mld::ALL_ROUTERS.into()), ROUTERS_HOP_LIMIT, 0);
        envelope.mld(source, mld::ALL_ROUTERS, &message(mld::REPORT, records))
    }
}

/// The type of service of IGMP messages (RFC 3376, section 4).
const INTERNETWORK_CONTROL: u8 = 0xc0;
/// The hop limit of messages to routers. With this value, no router forwards the messages.
const ROUTERS_HOP_LIMIT: u8 = 1;
