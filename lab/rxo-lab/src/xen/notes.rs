//! Notes on the method.

use super::plan::Plan;
use super::system::System;

/// Returns one paragraph for each kind of measurement.
pub(super) fn of(plan: &Plan) -> Vec<String> {
    let flags =
        System::ALL.map(|system| format!("{}: {}{}", system.name(), system.flags(), system.way()));
    vec![
        format!(
            "Systems, as flags of rxo guest. {}. BO+DA, auto and DA 4 are not in the paper.",
            flags.join("; ")
        ),
        "Packets an aggregate, the time of holding and requests are on virtual time: a frame of 1,448 \
         bytes every 16.7 us, the paper's 60,000 a second, and a guest that is busy; for requests \
         one that is idle. What auto holds by the guest's load is at ten times as many."
            .to_owned(),
        format!(
            "Instructions: callgrind over {} frames, in release builds the cost of what is shipped. \
             Engine, ring and copies count; the card and what fetches frames from it do not, and a \
             guest takes everything before the next poll. Instructions hardly show copies, which move \
             32 bytes each; bytes_copied does.",
            plan.counted_frames
        ),
        format!(
            "Guests: Linux in QEMU's emulation, one processor, its GRO on unless said; a plugin counts. \
             Transfers of {} and {} KiB from Linux, the difference counts; the program reads 64 KiB at a \
             time. Linux is a guest whose card gives it the same polls, and which has no driver domain. What is derived is min(link, C / \
             instructions a byte), C such that Linux has 721.1 Mbit/s.",
            plan.guest_bytes / 4096,
            plan.guest_bytes / 1024
        ),
        format!(
            "Requests, and rates that are measured: guests on the paper's machine. Driver domain and guest share a core, a card and \
             the sender have the other; under Linux the card is the guest's. Rates: transfers of {} and {} MiB, the difference counts. \
             Requests: one byte to a guest that sends it back, {} \
             transactions of each system in a round. A guest has the systems in turn, and is booted {} times. Several guests: behind \
             one switch, {} KiB to each at the same time, after a file whose hash each guest computes.",
            plan.machine_bytes / (4 << 20),
            plan.machine_bytes >> 20,
            plan.transactions,
            plan.boots,
            plan.several_bytes / 1024
        ),
    ]
}
