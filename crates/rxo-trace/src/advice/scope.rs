//! The scope of a decision: the packets to which the decision applies.
//!
//! A host does not receive the packets that it sends. If the capture shows on which host it was taken, the
//! decision is for the packets that this host receives. If the capture does not show this, and several
//! addresses receive many packets, the decision may depend on the receiving host.

use super::decide::{WORTH_CORES, format_savings};
use super::load::{Cores, Load};
use crate::projection::Costs;
use crate::report::{Outcome, Receiver, Traffic};
use crate::words::{agreeing, form, percent, plural};

/// The packets to which a decision applies, and the effect of coalescing on these packets.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) packets: u64,
    pub(super) deliveries: u64,
    /// The cores that are busy with receiving; `None` if the capture has no rate, because no time passes
    /// between its first and last packet.
    pub(super) cores: Option<Cores>,
    /// The sentence that names the packets, preceded by a space; empty if the decision applies to all packets.
    pub(super) remark: String,
}

impl Scope {
    /// Returns the packets to which the decision applies.
    pub(super) fn of(
        traffic: &Traffic,
        outcome: &Outcome,
        costs: Costs,
        receivers: &[Receiver],
    ) -> Self {
        match receivers.first().filter(|_| is_for_first(receivers, outcome)) {
            Some(host) if host.is_host => {
                let others = outcome.packets.saturating_sub(host.packets);
                let do_not = form(others, "does not", "do not");
                let others = plural(others, "packet");
                Self::one(
                    host,
                    format!(
                        " The figures are for {}, on which the capture was taken: {others} that \
                         it sent, or that others receive, {do_not} count.",
                        host.address
                    ),
                )
            }
            Some(only) => {
                let share = percent(only.packets as f64 / outcome.packets.max(1) as f64);
                Self::one(
                    only,
                    format!(
                        " The figures are for {}, which receives {share} of the packets.",
                        only.address
                    ),
                )
            }
            None => Self {
                packets: outcome.packets,
                deliveries: outcome.deliveries,
                cores: Load::of(traffic, costs).map(|load| load.cores(outcome)),
                remark: sent(traffic),
            },
        }
    }

    fn one(receiver: &Receiver, remark: String) -> Self {
        let Receiver { packets, deliveries, .. } = *receiver;
        Self { packets, deliveries, cores: cores(receiver), remark }
    }

    /// Returns the share of the packets that never reach the host's stack, from 0 to 1.
    pub(super) fn fewer_packets(&self) -> f64 {
        self.packets.saturating_sub(self.deliveries) as f64 / self.packets.max(1) as f64
    }
}

/// Returns `true` if a decision is for the first of the `receivers` only: for the host on which the capture was taken,
/// or for the only address that receives many packets. `false` if it is for all packets.
pub(crate) fn is_for_first(receivers: &[Receiver], outcome: &Outcome) -> bool {
    let is_one = |first: &Receiver| first.is_host || receivers.len() == 1;
    receivers.first().is_some_and(|first| is_one(first) && !is_all(first, outcome))
}

/// Returns `true` if at least 99 % of the packets are for the receiver.
const fn is_all(receiver: &Receiver, outcome: &Outcome) -> bool {
    receiver.packets >= outcome.packets - outcome.packets / 100
}

fn cores(receiver: &Receiver) -> Option<Cores> {
    Some(Cores { without: receiver.cores_without?, with: receiver.cores_with? })
}

/// Returns a sentence about the packets that the capturing host sent, as stated in their records; an empty
/// string if the host sent none.
fn sent(traffic: &Traffic) -> String {
    match traffic.sent_packets {
        0 => String::new(),
        sent => agreeing(sent, " {} [packet|packets] that the host sent [does|do] not count."),
    }
}

/// Returns a sentence on the figures if the capture does not show on which host it was taken, and several addresses receive
/// many packets; otherwise an empty string.
pub(super) const fn several(receivers: &[Receiver]) -> &'static str {
    match receivers {
        [first, _, ..] if !first.is_host => {
            " The capture does not show one receiving host: the figures are for all of its packets, in both directions if \
             it has both."
        }
        _ => "",
    }
}

/// Returns the decision for each receiving address as one text, if it is another for one of them than for all packets together,
/// for which `is_worth_together` says whether coalescing is worth it; `None` if one decision suffices. `is_plain` is `false`
/// if packets have VLAN tags or are in tunnels: a filter must name these first.
pub(super) fn by_receiver(
    receivers: &[Receiver],
    is_plain: bool,
    is_worth_together: bool,
) -> Option<String> {
    let [first, _, ..] = receivers else { return None };
    let decided: Vec<(&Receiver, Cores)> =
        receivers.iter().filter_map(|one| Some((one, cores(one)?))).collect();
    let is_worth = |(_, cores): &(&Receiver, Cores)| cores.saved() >= WORTH_CORES;
    if first.is_host || decided.iter().all(|one| is_worth(one) == is_worth_together) {
        return None;
    }
    let each = decided.iter().map(|(receiver, cores)| {
        let Receiver { address, packets, .. } = receiver;
        let verdict = format_savings(*cores, receiver.packets > receiver.deliveries);
        format!("{address} receives {}. {verdict}", plural(*packets, "packet"))
    });
    let each: Vec<String> = each.collect();
    let remedy = if is_plain {
        format!("Name the host with --flow \"dst {}\".", first.address)
    } else {
        "Capture on the host.".to_owned()
    };
    Some(format!(
        "It depends on the receiving host, which this capture does not show. {} {remedy}",
        each.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(address: &str, packets: u64, saved: f64) -> Receiver {
        Receiver {
            address: address.into(),
            packets,
            deliveries: if saved > 0.0 { packets / 2 } else { packets },
            cores_without: Some(0.1),
            cores_with: Some(0.1 - saved),
            ..Receiver::default()
        }
    }

    fn scope(receivers: &[Receiver]) -> Scope {
        let traffic = Traffic { packets: 900, bytes: 900_000, active_ns: 9, ..Traffic::default() };
        let outcome = Outcome { packets: 900, deliveries: 500, ..Outcome::default() };
        Scope::of(&traffic, &outcome, Costs::ASSUMED, receivers)
    }

    #[test]
    fn what_the_host_sent_is_left_out() {
        let host = Receiver { is_host: true, ..receiver("10.0.0.2", 600, 0.05) };
        let scope = scope(&[host, receiver("10.0.0.1", 300, 0.0)]);
        assert_eq!((scope.packets, scope.deliveries), (600, 300));
        assert!(scope.remark.starts_with(" The figures are for 10.0.0.2, on which"), "{scope:?}");
    }

    #[test]
    fn an_only_receiver_is_named_unless_it_receives_all() {
        assert!(scope(&[receiver("10.0.0.2", 900, 0.05)]).remark.is_empty());
        let named = scope(&[receiver("10.0.0.2", 850, 0.05)]);
        assert_eq!(named.packets, 850);
        assert!(
            named.remark.ends_with("10.0.0.2, which receives 94.4 % of the packets."),
            "{named:?}"
        );
    }

    #[test]
    fn each_receiver_has_its_decision_only_where_they_differ() {
        let (gains, gains_not) = (receiver("10.0.0.2", 600, 0.05), receiver("10.0.0.1", 300, 0.0));
        assert_eq!(by_receiver(&[gains.clone(), gains.clone()], true, true), None);
        assert_eq!(by_receiver(core::slice::from_ref(&gains), true, true), None);
        let host = Receiver { is_host: true, ..gains.clone() };
        assert_eq!(by_receiver(&[host, gains_not.clone()], true, true), None);
        let differ = [gains, gains_not];
        let text = by_receiver(&differ, true, true).unwrap();
        assert!(text.starts_with("It depends on the receiving host"), "{text}");
        assert!(text.contains("10.0.0.2 receives 600 packets. Worth it: it saves 5 %"), "{text}");
        assert!(text.contains("10.0.0.1 receives 300 packets. Not worth it: no two"), "{text}");
        assert!(text.ends_with("--flow \"dst 10.0.0.2\"."), "{text}");
        // To tcpdump the packets of a VLAN or a tunnel do not match `dst`.
        let text = by_receiver(&differ, false, true).unwrap();
        assert!(!text.contains("--flow") && text.ends_with("Capture on the host."), "{text}");
        // A sum may be too small although one host gains enough.
        assert_eq!(by_receiver(&[differ[1].clone(), differ[1].clone()], true, false), None);
        assert!(by_receiver(&differ, true, false).is_some());
    }
}
