//! The cases of the kernel's self-test of receive offload: the sent packets, and the expected deliveries.
//!
//! The cases are a table, so that the engine is tested with the same cases alone and live between two
//! interfaces. Contract: the profile is `linux-gro` without a limit of segments, and each burst is one poll,
//! or is held long enough to be one.

mod data;
mod flags;
mod headers;
mod limits;

use crate::{Packet, seg};

/// A test case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of the case, with the IP version.
    pub name: String,
    /// The packets to send, in bursts. The pauses between bursts are longer than any hold.
    pub bursts: Vec<Vec<Packet>>,
    /// Payload bytes of each expected delivery, in order.
    pub arrives: Vec<usize>,
}

impl Case {
    /// Returns all packets, in order.
    #[must_use]
    pub fn packets(&self) -> Vec<&Packet> {
        self.bursts.iter().flatten().collect()
    }

    /// Assigns packets to the expected deliveries. Each delivery begins with the first packet that
    /// is not yet assigned, and continues with packets of the same flow until its length is
    /// reached.
    ///
    /// # Panics
    /// If the lengths do not add up to whole packets, or packets are left over.
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let packets = self.packets();
        let mut waiting: Vec<usize> = (0..packets.len()).collect();
        let mut take = |&bytes: &usize| {
            let flow = flow(packets[waiting[0]]);
            let mut sum = 0;
            let mut group = Vec::new();
            while group.is_empty() || sum < bytes {
                let next = waiting.iter().position(|&index| flow == self::flow(packets[index]));
                let index = waiting.remove(next.expect("the flow has packets left"));
                sum += packets[index].len;
                group.push(index);
            }
            assert_eq!(sum, bytes, "{}", self.name);
            group
        };
        let groups = self.arrives.iter().map(&mut take).collect();
        assert_eq!(waiting, [] as [usize; 0], "{}", self.name);
        groups
    }
}

fn flow(packet: &Packet) -> (u32, (u16, u16)) {
    (packet.host, packet.ports)
}

/// Returns every case.
#[must_use]
pub fn all() -> Vec<Case> {
    let tables = [data::cases, flags::cases, headers::cases, limits::cases];
    tables.iter().flat_map(|cases| cases()).collect()
}

/// Makes a case of one burst, for one IP version.
fn case(name: &str, packets: Vec<Packet>, arrives: &[usize]) -> Case {
    let version = if packets[0].v6 { "v6" } else { "v4" };
    Case { name: format!("{name}/{version}"), bursts: vec![packets], arrives: arrives.to_vec() }
}

/// Makes a case for IPv4 and one for IPv6. `packets` makes the packets from a first segment.
fn both(name: &str, packets: impl Fn(&Packet) -> Vec<Packet>, arrives: &[usize]) -> [Case; 2] {
    [seg(), seg().v6()].map(|base| case(name, packets(&base), arrives))
}

/// Returns the segment that begins `bytes` later in the stream.
fn at(base: &Packet, bytes: u32) -> Packet {
    base.clone().seq(base.seq + bytes)
}

/// Returns the first segment, and a second one that `change` modifies.
fn second(base: &Packet, change: impl Fn(Packet) -> Packet) -> Vec<Packet> {
    vec![base.clone(), change(at(base, 100))]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::all;

    #[test]
    fn every_case_adds_up_and_has_a_name_of_its_own() {
        let cases = all();
        let names: HashSet<_> = cases.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), cases.len());
        for case in &cases {
            assert_eq!(case.groups().len(), case.arrives.len(), "{}", case.name);
        }
    }
}
