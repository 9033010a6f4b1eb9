//! The compared systems: those of the paper's Table III, and further ones.

use rxo_coalesce::{Hold, Policy};
use rxo_driver::{CopyPath, FrameLayout};
use serde::{Deserialize, Serialize};

use crate::guests::domain::Treatment;

/// A path from the card to the guest, with its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum System {
    /// No driver domain: the receiver owns the card.
    Linux,
    /// Each frame is forwarded separately.
    Xen,
    /// LRO; the bridge copies each aggregate into one region.
    Lro,
    /// LRO with Backend Optimization: no copy on the bridge.
    Bo,
    /// LRO with Delayed Aggregation: aggregates leave at every second poll.
    Da,
    /// BO and DA together, which the paper did not measure.
    BoDa,
    /// BO with aggregates that are held only while the guest is busy, as section V asks for.
    Auto,
    /// DA with aggregates that leave at every fourth poll.
    Da4,
    /// BO and DA with headers and payload in separate buffers.
    Pages,
}

impl System {
    /// Systems with a driver domain, for every kind of guest.
    pub(super) const DOMAINS: [Self; 6] =
        [Self::Xen, Self::Lro, Self::Bo, Self::Da, Self::BoDa, Self::Auto];
    /// Systems whose aggregates and hold times are measured over frames per poll. The path into the guest's
    /// memory changes neither.
    pub(super) const SWEPT: [Self; 7] =
        [Self::Xen, Self::Lro, Self::Bo, Self::Da, Self::BoDa, Self::Auto, Self::Da4];
    /// Systems whose driver domain is counted.
    pub(super) const COUNTED: [Self; 8] =
        [Self::Xen, Self::Lro, Self::Bo, Self::Da, Self::BoDa, Self::Auto, Self::Da4, Self::Pages];
    /// Linux, and the systems with a driver domain that live guests use.
    pub(super) const RECEIVERS: [Self; 7] =
        [Self::Linux, Self::Xen, Self::Lro, Self::Bo, Self::Da, Self::BoDa, Self::Auto];
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

    /// Returns all systems with their flags and ways, for a report.
    pub(super) fn list() -> String {
        let systems = [Self::Linux].into_iter().chain(Self::COUNTED);
        let of = |system: Self| format!("{}: {}{}", system.name(), system.flags(), system.way());
        systems.map(of).collect::<Vec<_>>().join("; ")
    }

    /// Returns the flags of `rxo guest` that coalesce as it does.
    const fn flags(self) -> &'static str {
        match self {
            Self::Linux => "no rxo",
            Self::Xen => "--policy none",
            Self::Lro | Self::Bo => "--policy inet-lro",
            Self::Da | Self::BoDa | Self::Pages => "--policy xen-delayed",
            Self::Auto => "--policy inet-lro --hold auto",
            Self::Da4 => "--policy xen-delayed --hold polls:4",
        }
    }

    /// Returns the treatment of its copies, which no flag has, for its line in a report.
    fn way(self) -> &'static str {
        match (self.path(), self.layout()) {
            (CopyPath::Linear, _) => ", each byte copied twice",
            (_, FrameLayout::Pages) => ", headers and payload apart",
            _ => "",
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

    /// Returns what its driver domain does; `None` for Linux, which has none.
    pub(super) fn treatment(self) -> Option<Treatment> {
        let treatment = Treatment { policy: self.policy(), path: self.path() };
        (self != Self::Linux).then_some(treatment)
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
        }
    }
}
