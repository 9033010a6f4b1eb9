//! Checks an interface before a run, for obstacles to the run and for conditions that need a warning. This module
//! only decides; [`Held`] reads the facts.
//!
//! [`Held`]: super::held::Held

use std::io;

use super::names::Names;
use crate::finding::Finding;
use crate::handover::Holdings;
use crate::handover::elsewhere::Elsewhere;
use crate::mentions::{Mention, ReferenceKind};

/// The facts about an interface that the checks read.
#[derive(Debug)]
pub(super) struct InterfaceFacts<'a> {
    pub(super) holdings: &'a Holdings,
    pub(super) elsewhere: &'a Elsewhere,
    /// The facts for a takeover of the interface; `None` if no TAP takes the interface over.
    pub(super) takeover: Option<&'a Takeover>,
}

/// The facts that matter only if a TAP takes the interface over.
#[derive(Debug)]
pub(super) struct Takeover {
    /// The names that the TAP gets; `None` if it cannot get them.
    pub(super) names: Option<Names>,
    /// `false` if this process lacks the privilege to check whether the interface can be renamed.
    pub(super) may_rename: bool,
    pub(super) mentions: Vec<Mention>,
}

/// Returns the findings of all checks on an interface, in the order in which a run examines them.
pub(super) fn all(seen: &InterfaceFacts<'_>) -> Vec<Finding> {
    let InterfaceFacts { holdings, elsewhere, takeover } = *seen;
    let mut found = vec![place(holdings), containers(holdings, elsewhere)];
    found.push(addresses(holdings, takeover.is_some()));
    if let Some(takeover) = takeover {
        found.extend([name(holdings, takeover), rules(holdings, takeover)]);
    }
    found
}

/// Checks whether interfaces of this network namespace contain the interface (a bridge, a bond), or are built
/// on it (a VLAN).
fn place(holdings: &Holdings) -> Finding {
    let link = holdings.link();
    let name = &link.name;
    if link.is_loopback {
        let found = format!("`{name}` is loopback, which has no wire");
        return Finding::breaks(PLACE, found, "give a nic");
    }
    if let Some(master) = &link.master {
        let found = format!("`{name}` is part of `{master}`, which would get its frames no more");
        let remedy = format!("take it out with `ip link set {name} nomaster`");
        return Finding::breaks(PLACE, found, remedy);
    }
    let [upper, ..] = link.uppers.as_slice() else {
        return Finding::fine(PLACE, "no bridge, bond or VLAN has it");
    };
    let found = format!("`{upper}` is made of `{name}` and would get its frames no more");
    let remedy =
        format!("remove it with `ip link delete {upper}`, and make it of the host's device");
    Finding::breaks(PLACE, found, remedy)
}

/// Checks whether interfaces of other network namespaces are built on the interface.
fn containers(holdings: &Holdings, elsewhere: &Elsewhere) -> Finding {
    let name = &holdings.link().name;
    let Elsewhere { made_of, namespaces, unseen, is_refused } = elsewhere;
    if let [other, ..] = made_of.as_slice() {
        let found = format!(
            "`{other}` of another network namespace, such as a container's, is made of `{name}` and would get its \
             frames no more"
        );
        return Finding::breaks(CONTAINERS, found, "remove it there, or give another nic");
    }
    if *is_refused {
        return Finding::not_run(CONTAINERS, "CAP_NET_ADMIN");
    }
    if !unseen.is_empty() {
        let needs =
            format!("more privilege to see the networks of processes: {}", in_a_line(unseen));
        return Finding::not_run(CONTAINERS, &needs);
    }
    Finding::fine(CONTAINERS, format!("nothing in {namespaces} other networks is made of it"))
}

/// Checks whether the interface has addresses. With one, the host would receive each frame twice.
fn addresses(holdings: &Holdings, takes_over: bool) -> Finding {
    let name = &holdings.link().name;
    let (count, routes) = (holdings.addresses().count(), holdings.routes().count());
    match holdings.first_own_address() {
        Some(address) if !takes_over => {
            let found = format!(
                "`{name}` has the address {address}, and the host would get each frame twice"
            );
            let remedy = format!(
                "give --take-over to have it moved to the host's device, or take it away with `ip address delete \
                 {address} dev {name}`"
            );
            Finding::breaks(ADDRESSES, found, remedy)
        }
        _ if takes_over => {
            Finding::fine(ADDRESSES, format!("{count} addresses and {routes} routes move"))
        }
        _ => Finding::fine(ADDRESSES, "none of its own"),
    }
}

/// Checks whether the TAP can take the interface's name.
fn name(holdings: &Holdings, takeover: &Takeover) -> Finding {
    let Takeover { names, may_rename, .. } = takeover;
    let own = &holdings.link().name;
    match names {
        Some(names) => {
            Finding::fine(NAME, format!("the TAP takes `{own}`; the nic is {}", names.parked))
        }
        None if !may_rename => Finding::not_run(NAME, "CAP_NET_ADMIN"),
        None => {
            let found =
                format!("the TAP cannot take `{own}`, and programs that use the name see the nic");
            Finding::limited(NAME, found, RENAMES)
        }
    }
}

/// Checks whether rules of firewalls, routing and traffic control refer to the interface: during the run such
/// rules would match another interface, or none.
fn rules(holdings: &Holdings, takeover: &Takeover) -> Finding {
    let Takeover { names, may_rename, mentions } = takeover;
    let (own, is_renamed) = (&holdings.link().name, names.is_some());
    let lost: Vec<_> = mentions
        .iter()
        .filter(|mention| !is_renamed || mention.by != ReferenceKind::Name)
        .collect();
    if !lost.is_empty() {
        let rules = in_a_line(&lost);
        let (why, remedy) = if is_renamed {
            (
                "know it by its number or see only what arrives there",
                "write `iifname` and `oifname` in place of `iif` and `oif`, and remove filters at its ingress"
                    .to_owned(),
            )
        } else {
            let why = "name it, and the TAP cannot have its name";
            (why, format!("{RENAMES}; or remove the rules"))
        };
        let found =
            format!("while rxo runs, the host's frames do not come by `{own}`, but {rules} {why}");
        return Finding::breaks(RULES, found, remedy);
    }
    if !may_rename {
        return Finding::not_run(RULES, "CAP_NET_ADMIN");
    }
    let found = match mentions.len() {
        0 => "none means it".to_owned(),
        _ => format!("{} by its name match the TAP: {}", mentions.len(), in_a_line(mentions)),
    };
    Finding::fine(RULES, found)
}

/// Returns warnings about the interface `device` for the start of a run. `bound` lists the sockets that are
/// bound to the interface; `None` if no TAP takes the interface over.
pub(super) fn notices(
    device: &str,
    holdings: &Holdings,
    makes_secret_addresses: bool,
    bound: Option<&[String]>,
) -> Vec<Finding> {
    let mut found = vec![carrier(device, holdings)];
    if let Some(bound) = bound {
        found.push(sockets(device, bound));
        if makes_secret_addresses && holdings.accepts_advertisements() {
            let what = format!("{device} makes IPv6 addresses from a secret (addr_gen_mode)");
            let then = "the TAP makes others at the next advertisement, and those of now end with their lifetime";
            found.push(Finding::limited("address secret", what, then));
        }
    }
    found.extend(big_packets(device, holdings.link()));
    found
}

fn carrier(device: &str, holdings: &Holdings) -> Finding {
    if holdings.link().has_carrier {
        return Finding::fine(CARRIER, "on");
    }
    let remedy = "nothing can pass until it has; is the cable in?";
    Finding::limited(CARRIER, format!("{device} has no carrier"), remedy)
}

fn sockets(device: &str, bound: &[String]) -> Finding {
    if bound.is_empty() {
        return Finding::fine("bound sockets", "none of those that this process may see");
    }
    let found = format!("sockets are bound to {device} itself and get nothing while rxo runs");
    let remedy = format!("start their programs again: {}", in_a_line(bound));
    Finding::limited("bound sockets", found, remedy)
}

/// Returns a warning if the device accepts packets larger than any aggregate (BIG TCP), otherwise `None`.
pub(super) fn big_packets(device: &str, link: &crate::handover::Link) -> Option<Finding> {
    let (name, most_bytes) = (&link.name, link.most_bytes);
    (most_bytes > LARGEST_AGGREGATE).then(|| {
        let found = format!(
            "{device} is set to packets of up to {most_bytes} bytes (BIG TCP); those over {LARGEST_AGGREGATE} pass as \
             their frames"
        );
        let remedy = format!(
            "to have none, `ip link set {name} gso_max_size {LARGEST_AGGREGATE} gro_max_size {LARGEST_AGGREGATE}`"
        );
        Finding::limited("big packets", found, remedy)
    })
}

/// Returns `false` if the kernel refused the attempt `tried` for lack of privilege.
pub(super) fn is_allowed(tried: &io::Result<()>) -> bool {
    !tried.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Joins the first [`MOST_SHOWN`] items of `all` with commas, and appends the number of items left out.
fn in_a_line<T: ToString>(all: &[T]) -> String {
    let shown: Vec<_> = all.iter().take(MOST_SHOWN).map(ToString::to_string).collect();
    match all.len().saturating_sub(MOST_SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

const PLACE: &str = "place";
const CONTAINERS: &str = "containers";
const ADDRESSES: &str = "addresses";
const NAME: &str = "name";
const RULES: &str = "rules";
const CARRIER: &str = "carrier";
const RENAMES: &str = "that needs Linux 6.2, and a free name for the nic, such as `NAME-nic`";
/// Maximum number of rules or sockets that one line names.
const MOST_SHOWN: usize = 8;
/// The largest aggregate in bytes, headers included: the kernel's `GSO_LEGACY_MAX_SIZE`.
const LARGEST_AGGREGATE: u32 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;
    use crate::handover::Link;

    /// Builds the holdings of an interface `eth1` whose link `change` has modified.
    fn holdings(change: impl FnOnce(&mut Link)) -> Holdings {
        let mut link = Link::read(1).unwrap().unwrap();
        (link.name, link.is_loopback) = ("eth1".to_owned(), false);
        change(&mut link);
        Holdings::from_lines(&link, "")
    }

    fn of(holdings: &Holdings, elsewhere: &Elsewhere, takeover: Option<&Takeover>) -> Vec<Finding> {
        all(&InterfaceFacts { holdings, elsewhere, takeover })
    }

    fn state(found: &[Finding], name: &str) -> State {
        found.iter().find(|one| one.name == name).unwrap().state
    }

    fn takeover(may_rename: bool, is_renamed: bool, by: &[ReferenceKind]) -> Takeover {
        let names = Names {
            name: "eth1".to_owned(),
            altnames: Vec::new(),
            parked: "eth1-nic".to_owned(),
            tap: None,
        };
        let mention = |by: &ReferenceKind| Mention { place: "rule 7".to_owned(), by: *by };
        let mentions = by.iter().map(mention).collect();
        Takeover { names: is_renamed.then_some(names), may_rename, mentions }
    }

    #[test]
    fn an_interface_that_others_have_or_are_made_of_breaks() {
        let none = Elsewhere::default();
        type Change = fn(&mut Link);
        let rows: [(Change, State); 4] = [
            (|_| {}, State::Fine),
            (|link| link.is_loopback = true, State::Breaks),
            (|link| link.master = Some("br0".to_owned()), State::Breaks),
            (|link| link.uppers = vec!["eth1.7".to_owned()], State::Breaks),
        ];
        for (change, expected) in rows {
            assert_eq!(state(&of(&holdings(change), &none, None), PLACE), expected);
        }
    }

    #[test]
    fn networks_that_cannot_be_seen_are_not_called_free() {
        let rows = [
            (Elsewhere::default(), State::Fine),
            (Elsewhere { is_refused: true, ..Elsewhere::default() }, State::NotRun),
            (Elsewhere { unseen: vec!["7".to_owned()], ..Elsewhere::default() }, State::NotRun),
            (
                Elsewhere {
                    made_of: vec!["mv0".to_owned()],
                    unseen: vec!["7".to_owned()],
                    ..Elsewhere::default()
                },
                State::Breaks,
            ),
        ];
        for (elsewhere, expected) in rows {
            let found = of(&holdings(|_| {}), &elsewhere, None);
            assert_eq!(state(&found, CONTAINERS), expected, "{elsewhere:?}");
        }
    }

    #[test]
    fn rules_are_lost_by_number_and_without_the_name() {
        use ReferenceKind::{Ingress, Name, Number};
        let rows: [(bool, bool, &[ReferenceKind], State, State); 7] = [
            (true, true, &[], State::Fine, State::Fine),
            (true, true, &[Name, Name], State::Fine, State::Fine),
            (true, true, &[Name, Number], State::Fine, State::Breaks),
            (true, true, &[Ingress], State::Fine, State::Breaks),
            (true, false, &[], State::Limited, State::Fine),
            (true, false, &[Name], State::Limited, State::Breaks),
            // Without privilege the rules cannot be read.
            (false, false, &[], State::NotRun, State::NotRun),
        ];
        for (may_rename, is_renamed, by, name, rules) in rows {
            let takeover = takeover(may_rename, is_renamed, by);
            let found = of(&holdings(|_| {}), &Elsewhere::default(), Some(&takeover));
            assert_eq!((state(&found, NAME), state(&found, RULES)), (name, rules), "{takeover:?}");
        }
    }

    #[test]
    fn only_so_many_are_named() {
        let all: Vec<_> = (0..10).collect();
        assert_eq!(in_a_line(&all), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
        assert_eq!(in_a_line(&all[..2]), "0, 1");
    }
}
