//! Figures as lines of text.

use std::collections::BTreeMap;

use rxo_console::numbers::grouped;

use super::{Figures, GuestFigures, Incoming, Outgoing, PureAcks, WorkerFigures};

/// Maximum number of reasons of one kind in a line.
const TOP: usize = 3;

impl Figures {
    /// Formats the figures: one line for an interval, several for totals, followed by one line for each
    /// guest and each worker.
    #[must_use]
    pub fn text(&self) -> String {
        let of_all = if self.kind == "totals" { totals(self) } else { line(self) };
        of_all + &guests(&self.guests) + &workers(&self.workers, !self.guests.is_empty())
    }

    /// Formats the figures of a network card: one line for an interval, several for totals.
    #[must_use]
    pub fn card_text(&self) -> String {
        if self.kind == "totals" { card_totals(self) } else { card_line(self) }
    }
}

/// Formats the line that `rxo run` and `rxo guest` print for each interval.
fn line(figures: &Figures) -> String {
    let Figures { nic_in, host_out, host_in, .. } = figures;
    let mut line = format!(
        "{:>7.1} s  in {} pkt {:.2} Gbit/s  out {} ({})  back {} pkt {:.2} Gbit/s  \
         cpu {:.0} %",
        figures.elapsed_s,
        grouped(nic_in.packets),
        nic_in.gbit_per_s,
        grouped(host_out.deliveries),
        per_aggregate(figures, "pkt/aggregate"),
        grouped(host_in.packets),
        host_in.gbit_per_s,
        figures.cpu_percent,
    );
    if figures.coalescing.is_some_and(|switched| !switched.on) {
        line.push_str("  coalescing off");
    }
    if figures.acks.packets > 0 {
        line.push_str(&format!("  acks {}", acks(figures.acks)));
    }
    if let Some(split) = &figures.ack_split {
        line.push_str(&format!("  {}", split.line()));
    }
    for (what, reasons) in [("bypass", &figures.bypass), ("flush", &figures.flush)] {
        if !reasons.is_empty() {
            line.push_str(&format!("  {what} {}", listed(reasons, TOP)));
        }
    }
    line + &format_losses(figures)
}

/// Lists losses and violations of a ring's rules; empty if there were none.
fn format_losses(figures: &Figures) -> String {
    let counts = [
        ("LOST", figures.lost()),
        ("INVALID", figures.invalid()),
        ("UNSENT", figures.unsent),
        ("UNBALANCED", figures.unbalanced()),
    ];
    let shown = counts.into_iter().filter(|(_, count)| *count > 0);
    shown.map(|(what, count)| format!("  {what} {}", grouped(count))).collect()
}

/// Formats one line for each guest. Each line begins with a line break.
fn guests(guests: &[GuestFigures]) -> String {
    let width = guests.iter().map(|guest| guest.name.len()).max().unwrap_or(0);
    let lines = guests.iter().map(|guest| {
        let more = extra(guest.dropped, "DROPPED")
            + &extra(guest.refused, "refused")
            + &extra(guest.invalid, "INVALID")
            + &extra(guest.over_budget, "over budget");
        format!(
            "\n            {:<width$}  {} pkt in {} deliveries ({:.1} pkt/aggregate, {:.1} pieces each), \
             each byte copied {:.1} times, held {} us (p99 {} us), sent {}{more}",
            guest.name,
            grouped(guest.frames),
            grouped(guest.deliveries),
            guest.packets_per_aggregate,
            guest.pieces,
            guest.copies,
            guest.hold_p50_us,
            guest.hold_p99_us,
            grouped(guest.sent),
        )
    });
    lines.collect()
}

/// Formats one line for each worker; each begins with a line break. With guests, a worker coalesces nothing.
fn workers(workers: &[WorkerFigures], have_guests: bool) -> String {
    let lines = workers.iter().map(|worker| {
        let more = extra(worker.ring_drops, "lost in the ring")
            + &extra(worker.overload, "dropped in overload")
            + &extra(worker.dropped, "DROPPED");
        let to_hosts = match have_guests {
            true => format!(", {} pkt for guests", grouped(worker.deliveries)),
            false => format!(
                " in {} deliveries ({:.1} pkt/aggregate)",
                grouped(worker.deliveries),
                worker.packets_per_aggregate
            ),
        };
        format!(
            "\n            worker {:<2}  {} pkt{to_hosts}, back {} pkt, cpu {:.0} %{more}",
            worker.name,
            grouped(worker.packets),
            grouped(worker.sent),
            worker.cpu_percent,
        )
    });
    lines.collect()
}

/// Formats the totals: a line for each direction and each kind of reason.
fn totals(figures: &Figures) -> String {
    let mut text = format!(
        "totals after {:.1} s, cpu {:.0} %\n\
         nic -> host  {}; {}; {}\n\
         pure ACKs    {}\n\
         host -> nic  {}; {}\n\
         bypass       {}\n\
         flush        {}",
        figures.elapsed_s,
        figures.cpu_percent,
        format_incoming(&figures.nic_in, Causes::of(figures)),
        format_outgoing(&figures.host_out),
        per_aggregate(figures, "packets per aggregate"),
        acks(figures.acks),
        format_incoming(&figures.host_in, Causes::default()),
        format_outgoing(&figures.nic_out),
        listed(&figures.bypass, usize::MAX),
        listed(&figures.flush, usize::MAX),
    );
    if let Some(switched) = &figures.coalescing {
        text.push_str(&format!("\ncoalescing   {}", switched.totals()));
    }
    if let Some(split) = &figures.ack_split {
        text.push_str(&format!(
            "\nACK split    {}",
            split.totals(listed(&split.passed, usize::MAX))
        ));
    }
    if let Some(switch) = &figures.switch {
        let dropped = listed(&switch.dropped, usize::MAX);
        text.push_str(&format!("\nswitch       {}", switch.totals(&dropped)));
    }
    for (name, done) in [("impaired", &figures.impaired), ("impaired back", &figures.impaired_back)]
    {
        if !done.is_empty() {
            text.push_str(&format!("\n{name:<13}{}", listed(done, usize::MAX)));
        }
    }
    text + &violated(figures)
}

/// Formats a line for each violated invariant: unsent packets, and stages whose counters disagree.
fn violated(figures: &Figures) -> String {
    let mut text = String::new();
    if figures.unsent > 0 {
        let unsent = grouped(figures.unsent);
        text.push_str(&format!(
            "\nUNSENT       {unsent} packets written to the nic have not left it"
        ));
    }
    if figures.unbalanced() > 0 {
        let stages = figures.imbalance.iter().filter(|(_, frames)| **frames > 0);
        let stages = stages.map(|(stage, frames)| (*stage, *frames)).collect();
        text.push_str(&format!("\nUNBALANCED   {}", listed(&stages, usize::MAX)));
    }
    text
}

/// Formats the line that `rxo card` prints for each interval.
fn card_line(figures: &Figures) -> String {
    let Figures { nic_in, host_out, host_in, .. } = figures;
    let line = format!(
        "{:>7.1} s  to guest {} frames {:.2} Gbit/s, {} notifications  to wire {} frames {:.2} \
         Gbit/s  cpu {:.0} %",
        figures.elapsed_s,
        grouped(nic_in.packets),
        nic_in.gbit_per_s,
        grouped(host_out.submissions),
        grouped(host_in.packets),
        host_in.gbit_per_s,
        figures.cpu_percent,
    );
    line + &format_losses(figures)
}

/// Formats the totals of a network card: two lines for each direction.
fn card_totals(figures: &Figures) -> String {
    let Figures { nic_in, host_out, host_in, nic_out, .. } = figures;
    let notified = format!(
        "{} in {} notifications ({} could not be sent)",
        grouped(host_out.deliveries),
        grouped(host_out.submissions),
        grouped(host_out.dropped),
    );
    format!(
        "totals after {:.1} s, cpu {:.0} %\n\
         wire -> guest  {}; {notified}\n\
         \x20              {}\n\
         guest -> wire  {}; {}\n\
         \x20              {}",
        figures.elapsed_s,
        figures.cpu_percent,
        format_incoming(nic_in, Causes::of(figures)),
        listed(&figures.wire, usize::MAX),
        format_incoming(host_in, Causes::default()),
        format_outgoing(nic_out),
        listed(&figures.wire_back, usize::MAX),
    ) + &violated(figures)
}

/// Formats the packets per aggregate, or "none coalesced" if no packets could be coalesced.
fn per_aggregate(figures: &Figures, unit: &str) -> String {
    let packets = figures.packets_per_aggregate;
    if packets > 0.0 { format!("{packets:.1} {unit}") } else { "none coalesced".to_owned() }
}

/// Formats pure ACKs, their deliveries, and pure ACKs per delivery.
fn acks(acks: PureAcks) -> String {
    let PureAcks { packets, deliveries, per_delivery, .. } = acks;
    if packets == 0 {
        return "none".to_owned();
    }
    format!("{} in {} deliveries ({per_delivery:.1} each)", grouped(packets), grouped(deliveries))
}

/// The number of frames from the nic that rxo lost, by cause.
#[derive(Clone, Copy, Default)]
struct Causes {
    overload: u64,
    not_scheduled: u64,
    unaccounted: u64,
}

impl Causes {
    fn of(figures: &Figures) -> Self {
        let Figures { overload, not_scheduled, unaccounted, .. } = *figures;
        Self { overload, not_scheduled, unaccounted }
    }
}

fn format_incoming(from: &Incoming, causes: Causes) -> String {
    let Incoming { packets, gbit_per_s, ring_drops, truncated, invalid, .. } = *from;
    let (packets, drops) = (grouped(packets), grouped(ring_drops));
    let (cut, overload) =
        (extra(truncated, "cut short"), extra(causes.overload, "dropped in overload"));
    let not_scheduled = extra(causes.not_scheduled, "of them while rxo was not scheduled");
    let invalid = extra(invalid, "against the rules of the ring");
    let unaccounted = extra(causes.unaccounted, "LOST BEFORE RXO AND COUNTED BY NOBODY");
    format!(
        "{packets} packets in ({gbit_per_s:.2} Gbit/s, {drops} lost in the ring{not_scheduled}{cut}{invalid}{overload}{unaccounted})"
    )
}

fn format_outgoing(to: &Outgoing) -> String {
    let Outgoing { deliveries, submissions, fallbacks, dropped, dropped_frames, .. } = *to;
    format!(
        "{} out in {} calls ({} could not be sent{}{})",
        grouped(deliveries),
        grouped(submissions),
        grouped(dropped),
        extra(dropped_frames, "frames with them"),
        extra(fallbacks, "refused as a whole and sent singly"),
    )
}

/// Formats `count` followed by `what`, after a comma; returns an empty string if `count` is zero.
fn extra(count: u64, what: &str) -> String {
    if count > 0 { format!(", {} {what}", grouped(count)) } else { String::new() }
}

/// Lists the `most` most frequent reasons with their counts, in descending order.
fn listed(reasons: &BTreeMap<&'static str, u64>, most: usize) -> String {
    let mut sorted: Vec<_> = reasons.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1));
    let shown =
        sorted.iter().take(most).map(|(name, count)| format!("{name} {}", grouped(**count)));
    let text = shown.collect::<Vec<_>>().join(", ");
    if text.is_empty() { "none".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::Switching;
    use super::*;

    fn figures() -> Figures {
        let mut figures = Figures::totals(&super::super::Readings::default(), &[]);
        figures.elapsed_s = 3.0;
        figures.nic_in.packets = 1_012_345;
        figures.nic_in.gbit_per_s = 11.417;
        figures.host_out.deliveries = 31_890;
        figures.packets_per_aggregate = 31.74;
        figures.cpu_percent = 87.2;
        figures.flush =
            [("psh", 5), ("segment_limit", 31_000), ("order", 1), ("end_of_poll", 884)].into();
        figures
    }

    #[test]
    fn a_line_says_the_most_frequent_reasons() {
        assert_eq!(
            line(&figures()),
            "    3.0 s  in 1,012,345 pkt 11.42 Gbit/s  out 31,890 (31.7 pkt/aggregate)  back 0 pkt \
             0.00 Gbit/s  cpu 87 %  flush segment_limit 31,000, end_of_poll 884, psh 5"
        );
    }

    #[test]
    fn pure_acks_are_shown_where_there_are_any() {
        assert!(totals(&figures()).contains("\npure ACKs    none\n"));
        let acks = PureAcks {
            packets: 90_123,
            deliveries: 2_001,
            per_delivery: 45.04,
            aggregated: 90_000,
        };
        let figures = Figures { acks, ..figures() };
        assert!(line(&figures).contains("cpu 87 %  acks 90,123 in 2,001 deliveries (45.0 each)"));
        assert!(totals(&figures).contains("\npure ACKs    90,123 in 2,001 deliveries (45.0 each)"));
    }

    /// A guest with a wrong address or VLAN is recognised by the reason for which its frames are dropped.
    #[test]
    fn totals_say_what_the_switch_did_and_why_it_dropped() {
        assert!(!totals(&figures()).contains("\nswitch"), "there is none");
        let dropped = [("foreign_source", 1_200), ("foreign_vlan", 3)].into();
        let switch = Switching {
            forwarded: 9_000,
            flooded: 12,
            learned: 4,
            moved: 1,
            not_learned: 0,
            dropped,
        };
        let figures = Figures { switch: Some(switch), ..figures() };
        assert!(totals(&figures).ends_with(
            "\nswitch       9,000 frames forwarded, 12 flooded; 4 addresses learned, 1 moved, 0 not \
             learned; dropped foreign_source 1,200, foreign_vlan 3"
        ));
    }

    #[test]
    fn nothing_coalesced_is_not_a_number() {
        assert!(
            line(&Figures::totals(&super::super::Readings::default(), &[]))
                .contains("out 0 (none coalesced)")
        );
    }

    #[test]
    fn a_card_says_what_it_did_to_frames() {
        let mut figures = figures();
        figures.host_out.submissions = 12_000;
        figures.wire = [("segmented", 5), ("valid", 70_000)].into();
        assert_eq!(
            card_line(&figures),
            "    3.0 s  to guest 1,012,345 frames 11.42 Gbit/s, 12,000 notifications  to wire 0 \
             frames 0.00 Gbit/s  cpu 87 %"
        );
        let text = card_totals(&figures);
        assert!(text.contains("31,890 in 12,000 notifications"), "{text}");
        assert!(text.contains("\n               valid 70,000, segmented 5\n"), "{text}");
        figures.nic_in.ring_drops = 7;
        assert!(card_line(&figures).ends_with("  LOST 7"));
        assert!(card_totals(&figures).contains("7 lost in the ring"));
    }

    #[test]
    fn what_a_guest_does_wrong_is_never_left_out() {
        let mut figures = figures();
        (figures.host_in.invalid, figures.nic_in.ring_drops) = (4_321, 1);
        assert!(line(&figures).ends_with("  LOST 1  INVALID 4,321"));
        assert!(card_line(&figures).ends_with("  LOST 1  INVALID 4,321"));
        let text = totals(&figures);
        let host = text.lines().find(|line| line.starts_with("host -> nic")).unwrap();
        assert!(host.contains("0 lost in the ring, 4,321 against the rules of the ring)"));
        assert!(!text.contains("cut short"), "{text}");
    }

    #[test]
    fn a_loss_is_never_left_out() {
        let mut figures = figures();
        figures.nic_in.ring_drops = 1_234;
        assert!(line(&figures).ends_with("  LOST 1,234"));
        assert!(totals(&figures).contains("1,234 lost in the ring"));
    }

    #[test]
    fn a_loss_has_its_cause() {
        let mut figures = figures();
        (figures.nic_in.ring_drops, figures.not_scheduled, figures.overload) = (1_234, 1_000, 9);
        let said = "1,234 lost in the ring, 1,000 of them while rxo was not scheduled, 9 dropped in overload)";
        assert!(totals(&figures).contains(said));
        assert!(line(&figures).ends_with("  LOST 1,243"), "counted once");
    }

    #[test]
    fn totals_say_every_reason() {
        let text = totals(&figures());
        assert!(text.contains("segment_limit 31,000, end_of_poll 884, psh 5, order 1"), "{text}");
        assert!(text.contains("bypass       none"), "{text}");
        assert!(text.contains("31.7 packets per aggregate"), "{text}");
    }
}
