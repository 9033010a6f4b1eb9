//! A host that gets its addresses from router advertisements (SLAAC).

use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::Lab;

use super::advertiser::{Advertiser, Lifetimes};
use super::{BOTH, becomes, end, lab, start, state};
use crate::Test;
use crate::at_once::at_once;
use crate::process::wait_until;
use crate::setup::await_routes;
use crate::takeover::sorted;

pub(crate) const TESTS: &[Test] = &[
    ("hostlife_slaac_lives_on_beside_advertisements", slaac_lives_on),
    ("hostlife_a_router_that_goes_takes_its_route_with_it", a_router_that_goes),
];

/// Lifetimes in seconds, as short as a busy machine permits.
const SHORT: Lifetimes = Lifetimes { router: 4, valid: 4, preferred: 3 };
const VALID: Duration = Duration::from_secs(4);

/// Returns a host that accepts advertisements, and has received one.
fn slaac() -> (Lab, Advertiser) {
    let lab = lab();
    sorted(&lab, "ip -6 route delete default");
    lab.host().set_sysctl("net.ipv6.conf.eth1.accept_ra", "1").unwrap();
    let router = Advertiser::start(&lab, SHORT);
    wait_until("the host has an address and a route", || is_online(&lab));
    await_routes(&lab);
    (lab, router)
}

fn is_online(lab: &Lab) -> bool {
    has_address(lab) && has_route(lab)
}

fn has_address(lab: &Lab) -> bool {
    let addresses = sorted(lab, "ip -6 -o address show dev eth1");
    addresses.lines().any(|line| line.contains("2001:db8:5:") && !line.contains("deprecated"))
}

fn has_route(lab: &Lab) -> bool {
    sorted(lab, "ip -6 route show default").contains("proto ra metric 1024")
}

/// Checks repeatedly, for longer than every lifetime, that the host is online.
fn stays_online(lab: &Lab, what: &str) {
    let begin = Instant::now();
    while begin.elapsed() < VALID + VALID / 2 {
        assert!(has_address(lab), "{what}: the address is gone after {:?}", begin.elapsed());
        let routes = sorted(lab, "ip -6 route show default");
        assert!(routes.contains("default"), "{what}: no route after {:?}", begin.elapsed());
        thread::sleep(Duration::from_millis(100));
    }
}

fn slaac_lives_on() {
    at_once(BOTH, |takes_part| {
        // If a busy machine delayed the router, the test says nothing about rxo and is repeated.
        while !lives_on(takes_part) {}
    });
}

/// Returns `true` if the router was never late; otherwise nothing is asserted.
fn lives_on(takes_part: bool) -> bool {
    let (lab, router) = slaac();
    let before = state(&lab);
    let rxo = start(&lab, takes_part);
    let outcome = std::panic::catch_unwind(|| {
        stays_online(&lab, "while it runs");
        wait_until("the route is the kernel's own", || has_route(&lab));
    });
    end(rxo);
    let after = std::panic::catch_unwind(|| {
        stays_online(&lab, "afterwards");
        becomes(&lab, &before, &format!("with rxo: {takes_part}"));
    });
    if !router.kept_up(VALID) {
        return false;
    }
    outcome.and(after).unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // The address above expires, because nothing renews it.
    drop(router);
    wait_until("the address ends", || !has_address(&lab));
    true
}

/// A router that announces that it is no longer a router.
fn a_router_that_goes() {
    at_once(BOTH, |takes_part| {
        let (lab, router) = slaac();
        router.change(Lifetimes { router: 600, valid: 600, preferred: 600 });
        let has_long = || sorted(&lab, "ip -6 route show default").contains("expires 5");
        wait_until("the route lives for minutes", has_long);
        let rxo = start(&lab, takes_part);
        wait_until("the route is the kernel's own", || has_route(&lab));
        router.change(Lifetimes { router: 0, valid: 600, preferred: 600 });
        wait_until("the route is gone", || {
            !sorted(&lab, "ip -6 route show default").contains("default")
        });
        end(rxo);
        assert!(!sorted(&lab, "ip -6 route show default").contains("default"), "it came back");
        assert!(has_address(&lab));
    });
}
