//! Notes on the method.

use rxo_demo::wrap::count;

use super::plan::Plan;

/// Returns notes on the method.
pub(super) fn of(plan: &Plan) -> Vec<String> {
    let mut notes = vec![
        "Ways of an ACK: stack, each for itself through the engine (--set pure_acks=bypass; the paper's Copybreak); fast \
         path, each looked up and given by itself (TCP-PARO); records, aggregated by the engine with a record of each; \
         fast path in batches, one call for a connection's ACKs (--fast-path on)."
            .to_owned(),
    ];
    if !plan.counted.is_empty() || !plan.simulated.is_empty() {
        let scale = plan.scale;
        notes.push(format!(
            "Counted: rxo's host and a small HTTP server, which lends pages of files in memory, on one thread, {} with {} and a \
             link of 10 Gbit/s on virtual time, a ring in shared memory between them. Callgrind counts while clients take \
             {} MB, after {} MB in which windows open. A request is so many bytes as its file has. What a client acknowledges \
             at once arrives at once, as behind a card that moderates.",
            count(scale.clients.into(), "modelled client"),
            count(scale.files as usize, "file"),
            scale.counted_bytes >> 20,
            scale.warm_bytes >> 20
        ));
        notes.push(
            "Components are by the source file that an instruction was compiled from; receiving is what happens inside the \
             host's receive call, counted in a second run that does the same. Memory is copies, the allocator and pools of \
             frames, of both directions."
                .to_owned(),
        );
    }
    if !plan.simulated.is_empty() {
        notes.push(
            "Cycles are estimated by callgrind, not measured: one an instruction, 10 a miss of the first cache (32 KiB), 100 \
             a miss of the last (8 MiB)."
                .to_owned(),
        );
    }
    if plan.rounds > 0 {
        notes.push(format!(
            "Live: rxo serve on virtio: on one core, rxo card and {} on the other, each taking one of {} whole, again and again. \
             One server changes its way by rxo ctl between windows of {} ms; medians of {}, least and most in brackets.",
            count(plan.live.clients, "Linux client"),
            count(plan.live.files as usize, "file"),
            plan.live.window_ms,
            count(plan.rounds, "round"),
        ));
    }
    notes
}
