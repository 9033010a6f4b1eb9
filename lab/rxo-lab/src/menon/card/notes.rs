//! Notes on the method.

use rxo_demo::wrap::count;

use super::plan::Plan;

/// Returns notes on the method: those of all experiments, then those of single ones.
pub(super) fn of(plan: &Plan) -> Vec<String> {
    let mut notes = Vec::new();
    if !plan.cases.is_empty() {
        notes.extend(host_notes(plan));
    }
    if !plan.feeds.is_empty() {
        notes.push(format!(
            "Linux's own stack: a Linux guest in emulation, whose GRO is off unless the row says otherwise, behind rxo's \
             worker on the card's ring (the driver domain). The emulator counts the guest's instructions, kernel and \
             program, in two transfers; their difference, {} MB, counts. Callgrind counts the domain in the \
             longer one. Guest and domain are slow there, so polls are full; nothing is timed.",
            plan.guest_bytes / 4 * 3 / 1_000_000
        ));
    }
    if !plan.simulated.is_empty() {
        notes.push(
            "Figure 1 is a simulation by callgrind, not a measurement: a first cache of 16 KiB and a last one of 256 KiB, \
             smaller than the ring, so that frames come from memory as after DMA. Cycles are estimated: one an \
             instruction, 10 a miss of the first cache, 100 a miss of the last."
                .to_owned(),
        );
    }
    notes
}

fn host_notes(plan: &Plan) -> Vec<String> {
    vec![
        format!(
            "Medians of {}, least and most in brackets. Linux senders, CUBIC, MTU 1500, and the card on \
             one core; rxo's host on virtio: in a process of its own on another. Each transfer is made twice: \
             {} MB for processor time, {} MB under callgrind for instructions. The middle half of each counts.",
            count(plan.rounds, "round"),
            plan.timed_bytes / 1_000_000,
            plan.counted_bytes / 1_000_000
        ),
        "Instructions are those of the receiving process alone: the copy out of the ring, the engine, TCP, ACKs, and \
         the copy to the application. Callgrind counts exactly; what varies between rounds is how many frames \
         a poll found. Turns that found nothing are counted too; pauses/packet says how many there were."
            .to_owned(),
        "The card segments, completes and validates checksums, and moderates notifications by 50 us; its cost is in no \
         account. A worker that finds nothing pauses, for 50 us and under callgrind for 4 ms."
            .to_owned(),
        "ACK templates are expanded by the receiving host before the card's ring, which then takes each ACK: the paper's \
         driver expands, on the receiver's processor, and is in its totals. Every verdict is on that. In the rows that say \
         so the card expands them instead, and expansion and the ACKs' places in the ring are in no account."
            .to_owned(),
        "A generator is in the place of the wire where the receiver is saturated: it sends full segments as far as the \
         window allows and follows the acknowledgements, on the card's core. The paper's five senders saturate their \
         receiver; Linux senders on one core with the card do not."
            .to_owned(),
        "Categories are by the source file that an instruction was compiled from, inlined code included: protocol \
         is rxo-tcp (the paper's rx and tx), transmit writes headers and templates, non-proto is the rest of \
         the host, driver the rings, driver, expansion what makes ACKs of templates, aggr the engine, per-byte the copies."
            .to_owned(),
    ]
}
