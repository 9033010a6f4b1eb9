//! Reports: their records, and their encoding in IGMPv3 and MLDv2.
//!
//! Both protocols use the same layout: a header of 8 bytes, then records with a type, the number of sources,
//! the group and the sources (RFC 3376, section 4.2; RFC 3810, section 5.2).

use std::net::IpAddr;

use super::Channel;

/// The type of a record, which states if its sources are requested. Hosts that join only single sources need no
/// other record types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::link) enum RecordKind {
    /// MODE_IS_INCLUDE: the host is a member for these sources.
    Wanted = 1,
    /// ALLOW_NEW_SOURCES: the host has joined these sources.
    Joined = 5,
    /// BLOCK_OLD_SOURCES: the host has left these sources.
    Left = 6,
}

/// A record of a report: one group, and some of its sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::link) struct Record {
    pub(in crate::link) kind: RecordKind,
    pub(in crate::link) group: IpAddr,
    pub(in crate::link) sources: Vec<IpAddr>,
}

/// Combines `channels`, each with its record type, into records: one record per group and type, in order.
pub(super) fn records(channels: impl IntoIterator<Item = (RecordKind, Channel)>) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for (kind, channel) in channels {
        let same = |record: &&mut Record| (record.kind, record.group) == (kind, channel.group());
        match records.iter_mut().find(same) {
            Some(record) => record.sources.push(channel.source()),
            None => records.push(Record {
                kind,
                group: channel.group(),
                sources: vec![channel.source()],
            }),
        }
    }
    records
}

/// Builds a report of type `kind` with `records`. The checksum is left 0.
pub(in crate::link) fn message(kind: u8, records: &[Record]) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, 0, 0];
    message.extend((records.len() as u16).to_be_bytes());
    for record in records {
        message.extend([record.kind as u8, 0]);
        message.extend((record.sources.len() as u16).to_be_bytes());
        let addresses = std::iter::once(&record.group).chain(&record.sources);
        addresses.for_each(|ip| match ip {
            IpAddr::V4(ip) => message.extend(ip.octets()),
            IpAddr::V6(ip) => message.extend(ip.octets()),
        });
    }
    message
}
