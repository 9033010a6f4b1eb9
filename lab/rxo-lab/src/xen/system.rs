//! The systems that are compared: those of the paper's Table III, and some that it did not have.

use rxo_coalesce::{Hold, Policy};
use rxo_driver::{CopyPath, FrameLayout};
use serde::Serialize;

/// A way from the card to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum System {
    /// The receiver has the card itself: there is no driver domain.
    Linux,
    /// Each frame is passed on by itself.
    Xen,
    /// LRO; the bridge copies each aggregate into one region.
    Lro,
    /// LRO with Backend Optimization: no copy on the bridge.
    Bo,
    /// LRO with Delayed Aggregation: aggregates leave at every second poll.
    Da,
    /// Both, which the paper did not measure.
    BoDa,
    /// Both, held only while the guest is busy: what section V asks for.
    Auto,
    /// DA in which aggregates leave at every fourth poll.
    Da4,
    /// BO+DA with headers and payload apart.
    Pages,
}

impl System {
    /// Those with a driver domain, in front of every kind of guest.
    pub(super) const DOMAINS: [Self; 6] =
        [Self::Xen, Self::Lro, Self::Bo, Self::Da, Self::BoDa, Self::Auto];
    /// Those whose aggregates and times of holding are swept over frames a poll. How frames lie changes neither.
    pub(super) const SWEPT: [Self; 7] =
        [Self::Xen, Self::Lro, Self::Bo, Self::Da, Self::BoDa, Self::Auto, Self::Da4];
    /// Those whose driver domain is counted.
    pub(super) const COUNTED: [Self; 8] =
        [Self::Xen, Self::Lro, Self::Bo, Self::Da, Self::BoDa, Self::Auto, Self::Da4, Self::Pages];
    /// The receiver without a driver domain, and those of guests.
    pub(super) const RECEIVERS: [Self; 7] =
        [Self::Linux, Self::Xen, Self::Lro, Self::Bo, Self::Da, Self::BoDa, Self::Auto];
    pub(super) const ALL: [Self; 9] = [
        Self::Linux,
        Self::Xen,
        Self::Lro,
        Self::Bo,
        Self::Da,
        Self::BoDa,
        Self::Auto,
        Self::Da4,
        Self::Pages,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Xen => "Xen",
            Self::Lro => "LRO",
            Self::Bo => "BO",
            Self::Da => "DA",
            Self::BoDa => "BO+DA",
            Self::Auto => "auto",
            Self::Da4 => "DA 4",
            Self::Pages => "BO+DA, pages",
        }
    }

    /// The flags of `rxo guest` that make it.
    pub(super) const fn flags(self) -> &'static str {
        match self {
            Self::Linux => "no rxo",
            Self::Xen => "--policy none",
            Self::Lro => "--policy inet-lro --path linear",
            Self::Bo => "--policy inet-lro",
            Self::Da => "--policy xen-delayed --path linear",
            Self::BoDa => "--policy xen-delayed",
            Self::Auto => "--policy inet-lro --hold auto",
            Self::Da4 => "--policy xen-delayed --hold polls:4 --path linear",
            Self::Pages => "--policy xen-delayed --layout pages",
        }
    }

    pub(super) const fn policy(self) -> Policy {
        match self {
            Self::Linux | Self::Xen => Policy::none(),
            Self::Lro | Self::Bo => Policy::inet_lro(),
            Self::Da | Self::BoDa | Self::Pages => Policy::xen_delayed(),
            Self::Da4 => Policy { hold: Hold::EveryNthPoll(4), ..Policy::xen_delayed() },
            Self::Auto => Policy { hold: Hold::AUTO, ..Policy::inet_lro() },
        }
    }

    pub(super) const fn path(self) -> CopyPath {
        match self {
            Self::Lro | Self::Da | Self::Da4 => CopyPath::Linear,
            _ => CopyPath::Gather,
        }
    }

    pub(super) const fn layout(self) -> FrameLayout {
        match self {
            Self::Pages => FrameLayout::Pages,
            _ => FrameLayout::Frames,
        }
    }

    pub(super) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|system| system.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_is_found_by_its_name() {
        for system in System::ALL {
            assert_eq!(System::by_name(system.name()), Some(system));
        }
        assert_eq!(System::by_name("KVM"), None);
    }

    #[test]
    fn the_profiles_are_what_the_flags_say() {
        for system in System::COUNTED {
            let words: Vec<_> = system.flags().split(' ').collect();
            let after = |flag| words.iter().position(|word| *word == flag).map(|at| words[at + 1]);
            let named = Policy::by_name(after("--policy").unwrap()).unwrap();
            let hold = match after("--hold") {
                Some("auto") => Hold::AUTO,
                Some(polls) => {
                    Hold::EveryNthPoll(polls.strip_prefix("polls:").unwrap().parse().unwrap())
                }
                None => named.hold,
            };
            assert_eq!(system.policy(), Policy { hold, ..named }, "{system:?}");
            let is_linear = after("--path") == Some("linear");
            assert_eq!(system.path() == CopyPath::Linear, is_linear, "{system:?}");
            let is_apart = after("--layout") == Some("pages");
            assert_eq!(system.layout() == FrameLayout::Pages, is_apart, "{system:?}");
        }
    }
}
