//! The C interface to the counters by reason of bypass and flush.

use std::ffi::{CStr, CString, c_char};
use std::sync::LazyLock;

use rxo_coalesce::{BypassReason, Counters, FlushReason};

use super::RxoEngine;

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
