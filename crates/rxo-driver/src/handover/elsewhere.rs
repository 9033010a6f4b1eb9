//! Interfaces of other network namespaces that are made of one of ours, such as the macvlan of a container.
//!
//! They do not appear among our own. The kernel lists those of another namespace to us if it has a number here, so each
//! namespace that can be found gets one.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rxo_netlink::{Netlink, Request, attribute, u32_at};

use super::link::{HEADER_BYTES, Shown};

/// The names of interfaces elsewhere that are made of the one with this index. Namespaces that cannot be entered, and
/// kernels that list none of others, show nothing.
pub(crate) fn made_of(index: u32) -> Vec<String> {
    search(index).unwrap_or_default()
}

fn search(index: u32) -> io::Result<Vec<String>> {
    let netlink = Netlink::route()?;
    for file in namespaces() {
        // It may have a number already.
        _ = netlink.change(&request(NEW_NUMBER, &file).attribute(NUMBER, &(-1_i32).to_ne_bytes()));
    }
    let mut found = Vec::new();
    for number in numbers(&netlink)? {
        let links = Request::new(libc::RTM_GETLINK, &[0; HEADER_BYTES]);
        // A namespace may be gone since.
        let links =
            netlink.dump(&links.attribute(TARGET, &number.to_ne_bytes())).unwrap_or_default();
        let own = own_number(&netlink);
        let links = links.iter().filter_map(|link| Shown::read(link));
        found.extend(
            links
                .filter(|link| own.is_some() && link.is_made_of_other(index, own))
                .map(|link| link.name()),
        );
    }
    Ok(found)
}

/// The numbers of all namespaces that have one here.
fn numbers(netlink: &Netlink) -> io::Result<Vec<u32>> {
    let shown = netlink.dump(&Request::new(GET_NUMBER, &[0; NUMBER_HEADER_BYTES]))?;
    let number = |one: &Vec<u8>| u32_at(attribute(one.get(NUMBER_HEADER_BYTES..)?, NUMBER)?, 0);
    Ok(shown.iter().filter_map(number).collect())
}

/// The number of our own namespace. It gets one when something that was made of one of ours is listed.
fn own_number(netlink: &Netlink) -> Option<u32> {
    let own = File::open("/proc/thread-self/ns/net").ok()?;
    let answer = netlink.ask(&request(GET_NUMBER, &own)).ok()?;
    u32_at(attribute(answer.first()?.get(NUMBER_HEADER_BYTES..)?, NUMBER)?, 0)
}

fn request(kind: u16, namespace: &File) -> Request {
    let number = namespace.as_raw_fd().cast_unsigned();
    Request::new(kind, &[0; NUMBER_HEADER_BYTES]).attribute(DESCRIPTOR, &number.to_ne_bytes())
}

/// The namespaces of all processes, and those with a name, each once. Without ours.
fn namespaces() -> Vec<File> {
    let paths = |directory: &str| {
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let of_processes = paths("/proc").map(|process| process.join("ns/net"));
    let all = of_processes.chain(paths("/run/netns")).chain(paths("/run/docker/netns"));
    let number = |path: &PathBuf| Some(fs::metadata(path).ok()?.ino());
    let mut known: BTreeSet<u64> =
        number(&PathBuf::from("/proc/thread-self/ns/net")).into_iter().collect();
    let new = all.filter(|path| number(path).is_some_and(|number| known.insert(number)));
    new.filter_map(|path| File::open(path).ok()).collect()
}

/// `rtgenmsg`, padded.
const NUMBER_HEADER_BYTES: usize = 4;
// linux/net_namespace.h, linux/rtnetlink.h and linux/if_link.h.
const NEW_NUMBER: u16 = 88;
const GET_NUMBER: u16 = 90;
const NUMBER: u16 = 1;
const DESCRIPTOR: u16 = 3;
const TARGET: u16 = 46;
