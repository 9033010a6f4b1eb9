//! Holdings: the addresses, routes and permanent neighbours of an interface at one instant.

use std::io;
use std::time::Duration;

use rxo_device::DeviceError;
use rxo_frame::Instant;
use rxo_netlink::{Netlink, Request};

use super::address::Address;
use super::advertised::Advertised;
use super::link::Link;
use super::neighbour::{self, Neighbour};
use super::route::{self, Route};
use super::settings::Settings;
use crate::{clock, fault};

/// The addresses, routes and permanent neighbours of an interface, all read at the same time.
#[derive(Clone, Debug)]
pub struct Holdings {
    pub(super) link: Link,
    pub(super) addresses: Vec<Address>,
    pub(super) routes: Vec<Route>,
    pub(super) neighbours: Vec<Neighbour>,
    /// Routes of other interfaces whose preferred source is an address of this interface. Such routes are not
    /// moved, but the kernel removes them once no interface has the address.
    pub(super) dependents: Vec<Route>,
    /// `true` if the kernel accepts router advertisements on the interface. It then renews the routes that it
    /// learned from them.
    pub(super) accepts_advertisements: bool,
    pub(super) read_at: Instant,
}

/// An operation that adds one item to an interface.
enum Step {
    Request(Request),
    /// Adds a default route with the flags that mark it as learned from a router advertisement.
    Advertised(Advertised),
}

/// The IP versions of the holdings that an operation handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HoldingsPart {
    Both,
    Ipv6,
}

impl Holdings {
    /// Reads the holdings of `link`. Changes nothing.
    ///
    /// # Errors
    /// If the system refuses to list addresses, routes or neighbours.
    pub(crate) fn read(link: &Link) -> Result<Self, DeviceError> {
        let read = || {
            let netlink = Netlink::route()?;
            let addresses = addresses(&netlink, link.index)?;
            let (routes, others): (Vec<_>, Vec<_>) =
                routes(&netlink)?.into_iter().partition(|route| route.leaves_by(link.index));
            let says_ours = |route: &Route| {
                let source = route.source();
                source.is_some() && addresses.iter().any(|address| address.ip() == source)
            };
            Ok(Self {
                link: link.clone(),
                routes,
                dependents: others.into_iter().filter(says_ours).collect(),
                addresses,
                neighbours: neighbours(&netlink, link.index)?,
                accepts_advertisements: Settings::accepts_advertisements(&link.name),
                read_at: clock::now(),
            })
        };
        read().map_err(|error: io::Error| {
            fault::system(format!("cannot read what {} has", link.name), error)
        })
    }

    /// Returns the interface that had these holdings.
    pub(crate) const fn link(&self) -> &Link {
        &self.link
    }

    /// Formats the interface's hardware address, such as `52:54:00:00:00:02`.
    #[must_use]
    pub fn hardware_address(&self) -> String {
        let bytes = self.link.mac.iter().map(|byte| format!("{byte:02x}"));
        bytes.collect::<Vec<_>>().join(":")
    }

    /// Returns the interface's addresses with their prefix lengths, as strings.
    pub fn addresses(&self) -> impl Iterator<Item = String> {
        self.addresses.iter().map(Address::to_string)
    }

    /// Returns the interface's routes as strings, without the routes that the kernel creates for each address.
    pub fn routes(&self) -> impl Iterator<Item = String> {
        self.routes.iter().filter(|route| route.is_set()).map(Route::to_string)
    }

    /// Returns `true` if the kernel accepts router advertisements on the interface.
    pub(crate) const fn accepts_advertisements(&self) -> bool {
        self.accepts_advertisements
    }

    /// Returns `true` if the interface has an IPv6 link-local address.
    pub(crate) fn has_link_local(&self) -> bool {
        self.addresses.iter().any(Address::is_link_local)
    }

    /// Returns the holdings without the items of `others`, but keeps an item of `others` that is also an item of
    /// `moved`.
    #[must_use]
    pub(crate) fn without(self, others: &Self, moved: &Self) -> Self {
        let is_ours = |one: &dyn Fn(&Self) -> bool| !one(others) || one(moved);
        let Self { addresses, routes, neighbours, .. } = self;
        let keeps_address = |one: &Address| {
            is_ours(&|all| all.addresses.iter().any(|other| other.to_string() == one.to_string()))
        };
        let keeps_route = |one: &Route| {
            is_ours(&|all| all.routes.iter().any(|other| other.to_string() == one.to_string()))
        };
        let keeps_neighbour =
            |one: &Neighbour| is_ours(&|all| all.neighbours.iter().any(|other| other.is_for(one)));
        Self {
            addresses: addresses.into_iter().filter(keeps_address).collect(),
            routes: routes.into_iter().filter(keeps_route).collect(),
            neighbours: neighbours.into_iter().filter(keeps_neighbour).collect(),
            ..self
        }
    }

    /// Replaces each route that refers to a next hop object in `before` by the route of `before`. Otherwise the
    /// reference to the object would be lost, because the route on the TAP contains the object's gateways
    /// instead.
    pub(crate) fn keep_objects(&mut self, before: &Self) {
        let with_objects: Vec<&Route> =
            before.routes.iter().filter(|one| one.has_object()).collect();
        for one in with_objects {
            let text = one.to_string();
            if let Some(route) = self.routes.iter_mut().find(|route| route.to_string() == text) {
                *route = one.clone();
            }
        }
    }

    /// Returns the number of permanent neighbours.
    #[must_use]
    pub fn neighbours(&self) -> usize {
        self.neighbours.len()
    }

    /// Returns the first address that is not link-local, because the kernel creates link-local addresses by
    /// itself; `None` if there is none.
    #[must_use]
    pub(crate) fn first_own_address(&self) -> Option<String> {
        self.addresses.iter().find(|address| !address.is_link_local()).map(Address::to_string)
    }

    /// Moves all holdings to `to`, which must be up. As far as the kernel allows, each item is added to `to`
    /// before it is removed from the interface.
    ///
    /// # Errors
    /// If the kernel refuses an item. Items that were moved before it stay moved until
    /// [`add_all_to`](Holdings::add_all_to).
    pub(crate) fn move_to(&self, to: &Link) -> Result<(), DeviceError> {
        let netlink = Netlink::route().map_err(|error| self.cannot("move it", error))?;
        self.add_to(&netlink, to, HoldingsPart::Both)?;
        let way = (self.link.index, self.link.index);
        let routes = self.routes.iter().filter_map(|route| route.remove(way));
        let addresses = self.addresses.iter().map(|address| address.remove(self.link.index));
        let neighbours = self.neighbours.iter().map(|one| one.remove(self.link.index));
        for request in routes.chain(neighbours).chain(addresses) {
            // An error is ignored: removing a primary address has already removed its secondary addresses.
            _ = netlink.change(&request);
        }
        Ok(())
    }

    /// Moves all holdings to `to`. If `to` has some items already, updates their lifetimes.
    ///
    /// # Errors
    /// Returns the errors of [`Holdings::move_to`].
    pub(crate) fn join(&self, to: &Link) -> Result<(), DeviceError> {
        let netlink = Netlink::route().map_err(|error| self.cannot("move it", error))?;
        let elapsed = clock::now().since(self.read_at);
        for request in self.addresses.iter().filter_map(|one| one.add(&self.link, to, elapsed)) {
            let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
            // A refusal here is repeated by `move_to`, which returns the error.
            _ = netlink.change(&request.with_kind(libc::RTM_NEWADDR).flags(flags));
        }
        self.move_to(to)
    }

    /// Returns `true` if there are no addresses, routes or permanent neighbours.
    pub(crate) fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.routes.is_empty() && self.neighbours.is_empty()
    }

    /// Removes from `other` those items of these holdings that were moved to `other`. Errors are ignored.
    pub(crate) fn take_from(&self, other: &Link) {
        let Ok(netlink) = Netlink::route() else { return };
        let way = (self.link.index, other.index);
        let routes = self.routes.iter().filter_map(|route| route.remove(way));
        let neighbours = self.neighbours.iter().map(|one| one.remove(other.index));
        let addresses = self.addresses.iter().map(|address| address.remove(other.index));
        for request in routes.chain(neighbours).chain(addresses) {
            // An item may be gone already.
            _ = netlink.change(&request);
        }
    }

    /// Adds all holdings to `to`: the interface that had them, or the interface that replaced it.
    ///
    /// # Errors
    /// The first refusal of the kernel. The remaining items are added nevertheless.
    pub(crate) fn add_all_to(&self, to: &Link) -> Result<(), DeviceError> {
        let given = self.add_part(to, HoldingsPart::Both);
        given.and(self.add_dependents())
    }

    /// Adds the IPv6 items again that the kernel removed when IPv6 was switched off. Leaves IPv4 unchanged.
    ///
    /// # Errors
    /// Returns the errors of [`Holdings::add_all_to`].
    pub(crate) fn add_ipv6_to(&self, to: &Link) -> Result<(), DeviceError> {
        self.add_part(to, HoldingsPart::Ipv6)
    }

    /// Adds the routes of other interfaces again that the kernel removed together with the addresses.
    fn add_dependents(&self) -> Result<(), DeviceError> {
        let netlink = Netlink::route().map_err(|error| self.cannot("give it back", error))?;
        let elapsed = clock::now().since(self.read_at);
        let way = (self.link.index, self.link.index);
        let given = self
            .dependents
            .iter()
            .filter_map(|one| Some((format!("route {one}"), one.add_back(way, elapsed)?)))
            .map(|(what, request)| (what, Step::Request(request)));
        self.make(&netlink, self.link.index, "the routes", given.collect())
    }

    fn add_part(&self, to: &Link, of: HoldingsPart) -> Result<(), DeviceError> {
        let netlink = Netlink::route().map_err(|error| self.cannot("give it back", error))?;
        self.add_to(&netlink, to, of)
    }

    /// Adds the items to `to`: first addresses, then routes without a gateway, then all other items, because an
    /// item may require an earlier one.
    fn add_to(&self, netlink: &Netlink, to: &Link, of: HoldingsPart) -> Result<(), DeviceError> {
        let elapsed = clock::now().since(self.read_at);
        self.make(netlink, to.index, &to.name, self.steps(to, elapsed, of))
    }

    /// Carries out all steps, and returns the first refusal as an error. An item that exists already is not
    /// an error.
    fn make(
        &self,
        netlink: &Netlink,
        index: u32,
        to: &str,
        steps: Vec<(String, Step)>,
    ) -> Result<(), DeviceError> {
        let mut first_refusal = Ok(());
        for (what, step) in steps {
            let taken = match step {
                Step::Request(request) => netlink.change(&request),
                Step::Advertised(route) => route.add(index),
            };
            match taken {
                Err(error) if error.raw_os_error() != Some(libc::EEXIST) => {
                    let from = &self.link.name;
                    let refusal =
                        fault::system(format!("cannot give {to} what {from} has: {what}"), error);
                    first_refusal = first_refusal.and(Err(refusal));
                }
                _ => {}
            }
        }
        first_refusal
    }

    fn steps(&self, to: &Link, elapsed: Duration, of: HoldingsPart) -> Vec<(String, Step)> {
        let way = (self.link.index, to.index);
        let is_meant = |is_ipv6: bool| of == HoldingsPart::Both || is_ipv6;
        let addresses = self.addresses.iter().filter(|one| is_meant(one.0.is_ipv6()));
        let addresses = addresses
            .filter(|address| !address.is_duplicate())
            .filter_map(|one| Some((one.to_string(), one.add(&self.link, to, elapsed)?)));
        let neighbours = self.neighbours.iter().filter(|one| is_meant(one.0.is_ipv6()));
        let neighbours = neighbours.map(|one| ("a neighbour".to_owned(), one.add(to.index)));
        let [addresses, neighbours] = [addresses.collect::<Vec<_>>(), neighbours.collect()]
            .map(|all| all.into_iter().map(|(what, request)| (what, Step::Request(request))));
        let routes = self.routes.iter().filter(|one| is_meant(one.0.is_ipv6()));
        let routes = routes
            .filter_map(|one| Some((format!("route {one}"), self.route_step(one, way, elapsed)?)));
        addresses.chain(routes).chain(neighbours).collect()
    }

    fn route_step(&self, route: &Route, way: (u32, u32), elapsed: Duration) -> Option<Step> {
        match route.advertised(elapsed).filter(|_| self.accepts_advertisements) {
            Some(advertised) => Some(Step::Advertised(advertised)),
            // A next hop object has stayed on its interface.
            None if route.has_object() && route.leaves_by(way.1) => {
                Some(Step::Request(route.add_back((way.1, way.1), elapsed)?))
            }
            None => Some(Step::Request(route.add_back(way, elapsed)?)),
        }
    }

    fn cannot(&self, what: &str, error: io::Error) -> DeviceError {
        fault::system(format!("cannot read what {} has, to {what}", self.link.name), error)
    }
}

fn addresses(netlink: &Netlink, index: u32) -> io::Result<Vec<Address>> {
    let shown =
        netlink.dump(&Request::new(libc::RTM_GETADDR, &[0; super::address::HEADER_BYTES]))?;
    let all = shown.iter().filter_map(|shown| Address::read(shown));
    Ok(all.filter(|address| address.index() == Some(index)).collect())
}

fn routes(netlink: &Netlink) -> io::Result<Vec<Route>> {
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut header = [0; route::HEADER_BYTES];
        header[0] = family as u8;
        let shown = netlink.dump(&Request::new(libc::RTM_GETROUTE, &header))?;
        let all = shown.iter().filter_map(|shown| Route::read(shown));
        found.extend(all.filter(Route::moves));
    }
    found.sort_by_key(Route::has_gateway);
    Ok(found)
}

fn neighbours(netlink: &Netlink, index: u32) -> io::Result<Vec<Neighbour>> {
    let mut found = Vec::new();
    for flags in [0, libc::NTF_PROXY] {
        let mut header = [0; neighbour::HEADER_BYTES];
        header[10] = flags;
        let shown = netlink.dump(&Request::new(libc::RTM_GETNEIGH, &header))?;
        let all = shown.iter().filter_map(|shown| Neighbour::read(shown));
        found.extend(all.filter(|one| one.set_on() == Some(index)));
    }
    Ok(found)
}
