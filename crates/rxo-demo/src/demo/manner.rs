//! The configuration of rxo on each of the demo's paths.

use rxo::live::defaults;
use rxo_coalesce::Policy;
use rxo_driver::SubmitMode;

use super::path::Path;
use crate::through::Manner;

/// Returns rxo's configuration on `path`, or `None` for a path that does not include rxo.
pub(super) fn of(path: Path) -> Option<Manner> {
    match path {
        Path::KernelGroOff | Path::KernelGroOn | Path::Floor => None,
        Path::WritePerFrame => {
            Some(Manner { submit: SubmitMode::Writev, ..Manner::with(Policy::none()) })
        }
        Path::None => Some(Manner::with(Policy::none())),
        Path::Rxo => Some(Manner::with(defaults::live(Policy::linux_gro()))),
    }
}
