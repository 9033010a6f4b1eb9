//! Names of the nic, which the TAP has during the run.
//!
//! Packet filters, rules, scripts and daemons refer to an interface by its name. So that such references match
//! the TAP, the TAP takes the nic's name. The nic gets a temporary name, which is derived from its own name.

use std::io;

use rxo_device::DeviceError;

use crate::fault;
use crate::handover::Link;

/// The names of a nic, and the temporary name (`parked`) of the nic during a takeover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) name: String,
    pub(super) altnames: Vec<String>,
    pub(super) parked: String,
    /// The index and the original name of the TAP that has taken the nic's names. `None` before the takeover.
    pub(super) tap: Option<(u32, String)>,
}

/// The longest interface name that the kernel accepts, in bytes.
const LONGEST_BYTES: usize = 15;

impl Names {
    /// Reads the names of `nic`. `None` if the nic cannot be renamed while it is up, or every temporary name
    /// is taken.
    pub(super) fn choose(nic: &Link, can_be_renamed: bool) -> Option<Self> {
        let Link { name, altnames, index, .. } = nic;
        let mut parked = parked(name, *index).into_iter().filter(|_| can_be_renamed);
        let parked = parked.find(|parked| !Link::is_name_taken(parked))?;
        Some(Self { name: name.clone(), altnames: altnames.clone(), parked, tap: None })
    }

    /// Gives the nic's names to `tap`, after the nic was renamed. The TAP keeps its own name as an
    /// alternative name.
    ///
    /// # Errors
    /// If the kernel refuses the main name. Alternative names that it refuses are lost without an error.
    pub(super) fn move_to(&self, nic: &Link, tap: &mut Link) -> io::Result<()> {
        let own = tap.name.clone();
        tap.rename(&self.name)?;
        for altname in &self.altnames {
            _ = nic.remove_altname(altname);
            _ = tap.add_altname(altname);
        }
        _ = tap.add_altname(&own);
        _ = tap.set_labels(nic);
        Ok(())
    }

    /// Returns the names that the nic has after the run: the user may have changed the names of `tap` during
    /// the run. `before` is the TAP's state before the run.
    pub(super) fn now(&self, tap: &Link, before: &Link) -> Self {
        let name = if tap.name == before.name { &self.name } else { &tap.name };
        let is_nics = |altname: &&String| !is_of(before, altname);
        let altnames = tap.altnames.iter().filter(is_nics).cloned().collect();
        let tap = Some((before.index, before.name.clone()));
        Self { name: name.clone(), altnames, parked: self.parked.clone(), tap }
    }

    /// Takes the nic's names away from `tap`, and gives `tap` its own name again.
    ///
    /// # Errors
    /// If the kernel refuses the name.
    pub(super) fn take_back(&self, tap: &mut Link, before: &Link) -> Result<(), DeviceError> {
        for altname in tap.altnames.iter().filter(|name| !before.altnames.contains(name)) {
            _ = tap.remove_altname(altname);
        }
        // If the TAP's own name was taken meanwhile, any other will do: the nic needs the name that the TAP
        // has.
        let other = format!("rxo-{}", tap.index);
        renamed(tap, &before.name).or_else(|_| renamed(tap, &other))
    }

    /// Takes the nic's names from the TAP of a killed run, and returns that TAP; `None` if it no longer
    /// exists.
    pub(super) fn take_from_left(&self) -> Option<Link> {
        let (index, own) = self.tap.as_ref()?;
        let mut tap = Link::read(*index).ok()?.filter(|tap| tap.name == self.name)?;
        for altname in self.altnames.iter().chain([own]) {
            _ = tap.remove_altname(altname);
        }
        tap.rename(own).ok()?;
        Some(tap)
    }

    /// Gives the names back to `nic`, if it still has its temporary name.
    ///
    /// # Errors
    /// If the kernel refuses the main name. Alternative names that it refuses are lost without an error.
    pub(super) fn restore_on(&self, nic: &mut Link) -> Result<(), DeviceError> {
        if nic.name == self.parked {
            renamed(nic, &self.name)?;
        }
        for altname in self.altnames.iter().filter(|name| !nic.altnames.contains(name)) {
            _ = nic.add_altname(altname);
        }
        Ok(())
    }
}

impl Names {
    /// Writes the names as lines of a record.
    pub(super) fn to_lines(&self) -> Vec<String> {
        let altnames = self.altnames.iter().map(|name| format!("{ALTNAME} {name}"));
        let names = [format!("{NAME} {}", self.name), format!("{PARKED} {}", self.parked)];
        let tap = self.tap.iter().map(|(index, name)| format!("{TAP} {index} {name}"));
        names.into_iter().chain(tap).chain(altnames).collect()
    }

    /// Reads the names from the lines of a record; `None` if the record contains none.
    pub(super) fn from_lines(lines: &str) -> Option<Self> {
        let values = |word: &'static str| {
            lines.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
        };
        let first = |word| values(word).next().map(str::to_owned);
        let altnames = values(ALTNAME).map(str::to_owned).collect();
        let tap = values(TAP).find_map(|value| {
            let (index, name) = value.split_once(' ')?;
            Some((index.parse().ok()?, name.to_owned()))
        });
        Some(Self { name: first(NAME)?, altnames, parked: first(PARKED)?, tap })
    }
}

const NAME: &str = "name";
const PARKED: &str = "parked";
const TAP: &str = "tap";
const ALTNAME: &str = "altname";

/// Returns `true` if `name` is the name or an alternative name of `link`.
fn is_of(link: &Link, name: &String) -> bool {
    link.name == *name || link.altnames.contains(name)
}

fn renamed(link: &mut Link, name: &str) -> Result<(), DeviceError> {
    if link.name == name {
        return Ok(());
    }
    let before = link.name.clone();
    link.rename(name).map_err(|error| {
        fault::system(format!("cannot rename interface {before} to {name}"), error)
    })
}

/// Returns the candidates for the temporary name: `eth1-nic`, if it is not too long, and `nic-7`.
fn parked(name: &str, index: u32) -> Vec<String> {
    let fits = |name: &String| name.len() <= LONGEST_BYTES;
    [format!("{name}-nic"), format!("nic-{index}")].into_iter().filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_nic_meanwhile_fits_whatever_its_own_is() {
        assert_eq!(parked("eth1", 7), ["eth1-nic", "nic-7"]);
        assert_eq!(parked("enp0s31f6ab", 7), ["enp0s31f6ab-nic", "nic-7"]);
        assert_eq!(parked("enx0123456789ab", u32::MAX), ["nic-4294967295"]);
    }

    #[test]
    fn names_that_are_written_are_read_again() {
        let altnames = vec!["enp1s0".to_owned(), "lan".to_owned()];
        let tap = Some((7, "rxo0".to_owned()));
        let names = Names { name: "eth1".to_owned(), altnames, parked: "eth1-nic".to_owned(), tap };
        assert_eq!(Names::from_lines(&names.to_lines().join("\n")), Some(names));
        assert_eq!(Names::from_lines("gro\nnamed eth1"), None);
    }

    #[test]
    fn a_tap_that_the_user_renamed_gives_its_new_name() {
        let link = |name: &str, altnames: &[&str]| Link {
            name: name.to_owned(),
            altnames: altnames.iter().map(|&name| name.to_owned()).collect(),
            ..Link::read(1).unwrap().unwrap()
        };
        let names = Names {
            name: "eth1".to_owned(),
            altnames: vec!["enp1s0".to_owned()],
            parked: "eth1-nic".to_owned(),
            tap: None,
        };
        let before = link("rxo0", &["own"]);
        let now = names.now(&link("lan", &["enp1s0", "rxo0", "own", "new"]), &before);
        assert_eq!((now.name.as_str(), now.altnames), ("lan", vec!["enp1s0".into(), "new".into()]));
        assert_eq!(names.now(&before, &before).name, "eth1");
    }
}
