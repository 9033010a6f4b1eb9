//! Drops capabilities of the calling thread.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
};

use crate::ConfineError;

/// Empties the bounding set of capabilities, so that programs started later cannot gain any. Without
/// `CAP_SETPCAP` the set cannot be changed; in that case `no_new_privs` prevents such programs from gaining
/// capabilities.
pub(crate) fn empty_bounding_set() {
    let all = (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit));
    // The kernel rejects numbers above its last capability.
    for one in all.take_while(|&one| capability_is_in_bounding_set(one).is_ok()) {
        _ = remove_capability_from_bounding_set(one);
    }
}

/// Drops all capabilities except those in `kept`. Returns the capabilities that remain.
pub(crate) fn keep(kept: CapabilitySet) -> Result<CapabilitySet, ConfineError> {
    let refused = |why: rustix::io::Errno| ConfineError::refused("capabilities")(why.into());
    let CapabilitySets { permitted, .. } = capabilities(None).map_err(refused)?;
    let left = permitted & kept;
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: left, permitted: left, inheritable };
    set_capabilities(None, sets).map_err(refused)?;
    // Kernels before 4.3 have no ambient capabilities.
    _ = clear_ambient_capability_set();
    Ok(left)
}
