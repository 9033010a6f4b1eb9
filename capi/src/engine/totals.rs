//! The C interface to the counters: totals, and reasons of bypass and flush.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::LazyLock;

use rxo_coalesce::{BypassReason, Counters, FlushReason};

use super::RxoEngine;
use crate::border::{Failure, RXO_OK, guarded};

/// Totals of an engine. Later versions may append fields.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct RxoCounters {
    /// Frames processed.
    pub frames: u64,
    /// Deliveries, including aggregates.
    pub deliveries: u64,
    /// Frames that could have been coalesced but were delivered alone.
    pub singles: u64,
    /// Aggregates, each of two or more segments.
    pub aggregates: u64,
    /// Segments in all aggregates.
    pub aggregated_segments: u64,
    /// Frames that are never coalesced: not TCP, SYN, wrong checksum and so on.
    pub bypassed: u64,
}

/// Copies the totals of the engine. `size` is `sizeof(rxo_counters)`; no more bytes are written.
///
/// # Safety
/// `e` is from `rxo_new`; `size` bytes can be written at `counters`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_count(
    e: *const RxoEngine,
    counters: *mut RxoCounters,
    size: usize,
) -> c_int {
    let known = size_of::<RxoCounters>();
    let read = guarded(|| {
        // SAFETY: the caller's promise.
        let e = unsafe { e.as_ref() }.filter(|_| !counters.is_null() && size <= known);
        let e = e.ok_or_else(|| Failure::invalid(format!("counters of {size} bytes")))?;
        Ok(e.counters())
    });
    match read {
        Ok(values) => {
            let from: *const RxoCounters = &values;
            // SAFETY: `size` bytes can be written there, and no more than `known` are read.
            unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), counters.cast(), size) };
            RXO_OK
        }
        Err(code) => code,
    }
}

impl RxoEngine {
    fn counters(&self) -> RxoCounters {
        let counters = self.engine.counters();
        RxoCounters {
            frames: counters.frames,
            deliveries: counters.deliveries,
            singles: counters.singles + counters.ack_singles,
            aggregates: counters.aggregates + counters.ack_aggregates,
            aggregated_segments: counters.aggregated_segments + counters.aggregated_acks,
            bypassed: counters.bypassed_total(),
        }
    }
}

/// The name of a reason for C, and the reason.
struct Reason {
    name: CString,
    count: Count,
}

enum Count {
    Bypass(BypassReason),
    Flush(FlushReason),
}

/// All reasons in a fixed order. Their zero-terminated names are created once.
static REASONS: LazyLock<Vec<Reason>> = LazyLock::new(|| {
    let name = |text: String| CString::new(text).unwrap_or_default();
    let bypasses = BypassReason::ALL.iter().copied().map(|reason| Reason {
        name: name(format!("bypass_{}", reason.name())),
        count: Count::Bypass(reason),
    });
    let flushes = FlushReason::ALL.iter().copied().map(|reason| Reason {
        name: name(format!("flush_{}", reason.name())),
        count: Count::Flush(reason),
    });
    bypasses.chain(flushes).collect()
});

/// Creates the names of all reasons, so that later calls do not allocate.
pub(super) fn prepare() {
    LazyLock::force(&REASONS);
}

/// Returns the name and the count of the reason with number `index`; `None` beyond the last one.
fn reason(counters: &Counters, index: usize) -> Option<(&'static CStr, u64)> {
    let Reason { name, count } = REASONS.get(index)?;
    let count = match count {
        Count::Bypass(reason) => counters.bypassed(*reason),
        Count::Flush(reason) => counters.flushed(*reason),
    };
    Some((name, count))
}

/// The reasons why frames were bypassed and aggregates were flushed, by `index` from 0 on: the static name,
/// such as "bypass_psh" or "flush_end_of_poll", and the number of times. False if there is no such reason.
///
/// # Safety
/// `e` is from `rxo_new`; `name` and `count` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_count_reason(
    e: *const RxoEngine,
    index: usize,
    name: *mut *const c_char,
    count: *mut u64,
) -> bool {
    // SAFETY: the caller's promise.
    let found = unsafe { e.as_ref() }.and_then(|e| reason(e.engine.counters(), index));
    let Some((text, times)) = found.filter(|_| !name.is_null() && !count.is_null()) else {
        return false;
    };
    // SAFETY: the caller's promise.
    unsafe {
        name.write(text.as_ptr());
        count.write(times);
    }
    true
}
