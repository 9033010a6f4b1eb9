//! Interfaces in other network namespaces that are built on one of this namespace, such as the macvlan of a
//! container.
//!
//! The list of this namespace's interfaces does not contain them. The kernel lists another namespace's
//! interfaces to this process only if this namespace has assigned an id (nsid) to it, so an id is assigned to
//! each namespace that can be found.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rxo_netlink::{Netlink, Request, attribute, u32_at};

use super::link::{HEADER_BYTES, ListedLink};

/// The other network namespaces, as far as this process can see them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// The names of interfaces in other network namespaces that are built on the interface.
    pub(crate) made_of: Vec<String>,
    /// Number of other network namespaces that were found.
    pub(crate) namespaces: usize,
    /// The process numbers of processes whose network namespace this process may not read.
    pub(crate) unseen: Vec<String>,
    /// `true` if the kernel refuses to list the interfaces of another namespace to this process.
    pub(crate) is_refused: bool,
}

/// Searches other network namespaces for interfaces that are built on the interface with this index. Finds
/// nothing on kernels that cannot list another namespace.
pub(crate) fn made_of(index: u32) -> Elsewhere {
    let (files, unseen) = namespaces();
    let mut elsewhere = Elsewhere { namespaces: files.len(), unseen, ..Elsewhere::default() };
    elsewhere.made_of = search(index, &files, &mut elsewhere.is_refused).unwrap_or_default();
    elsewhere
}

fn search(index: u32, files: &[File], is_refused: &mut bool) -> io::Result<Vec<String>> {
    let netlink = Netlink::route()?;
    for file in files {
        let number = request(NEW_NUMBER, file).attribute(NUMBER, &(-1_i32).to_ne_bytes());
        // The namespace may have an id already, which is not an error.
        let numbered = netlink.change(&number);
        *is_refused |= numbered.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    }
    let mut found = Vec::new();
    for number in numbers(&netlink)? {
        let links = Request::new(libc::RTM_GETLINK, &[0; HEADER_BYTES]);
        // The namespace may have vanished since its id was listed.
        let links =
            netlink.dump(&links.attribute(TARGET, &number.to_ne_bytes())).unwrap_or_default();
        let own = own_number(&netlink);
        let links = links.iter().filter_map(|link| ListedLink::read(link));
        found.extend(
            links
                .filter(|link| own.is_some() && link.is_made_of_other(index, own))
                .map(|link| link.name()),
        );
    }
    Ok(found)
}

/// Returns the ids (nsid) that the current network namespace has assigned to other network namespaces.
fn numbers(netlink: &Netlink) -> io::Result<Vec<u32>> {
    let shown = netlink.dump(&Request::new(GET_NUMBER, &[0; NUMBER_HEADER_BYTES]))?;
    let number = |one: &Vec<u8>| u32_at(attribute(one.get(NUMBER_HEADER_BYTES..)?, NUMBER)?, 0);
    Ok(shown.iter().filter_map(number).collect())
}

/// Returns the id (nsid) that this network namespace has assigned to itself; `None` if there is none. The
/// kernel assigns the id when it lists an interface that is built on one of this namespace.
fn own_number(netlink: &Netlink) -> Option<u32> {
    let own = File::open("/proc/thread-self/ns/net").ok()?;
    let answer = netlink.ask(&request(GET_NUMBER, &own)).ok()?;
    u32_at(attribute(answer.first()?.get(NUMBER_HEADER_BYTES..)?, NUMBER)?, 0)
}

fn request(kind: u16, namespace: &File) -> Request {
    let number = namespace.as_raw_fd().cast_unsigned();
    Request::new(kind, &[0; NUMBER_HEADER_BYTES]).attribute(DESCRIPTOR, &number.to_ne_bytes())
}

/// Opens the network namespaces of all processes and all named network namespaces, each once, except the
/// namespace of this process. Also returns the numbers of the processes whose namespace this process may not
/// read.
fn namespaces() -> (Vec<File>, Vec<String>) {
    let paths = |directory: &str| {
        fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let of_processes = paths("/proc").map(|process| process.join("ns/net"));
    let all = of_processes.chain(paths("/run/netns")).chain(paths("/run/docker/netns"));
    let number = |path: &PathBuf| fs::metadata(path).map(|found| found.ino());
    let mut known: BTreeSet<u64> =
        number(&PathBuf::from("/proc/thread-self/ns/net")).into_iter().collect();
    let (mut files, mut unseen) = (Vec::new(), Vec::new());
    for path in all {
        match number(&path) {
            Ok(number) if known.insert(number) => files.extend(File::open(path).ok()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                unseen.extend(process_of(&path));
            }
            // A known namespace, a process that has ended, or an entry of `/proc` that is not a process.
            _ => {}
        }
    }
    (files, unseen)
}

/// Returns the number of the process to which a path below `/proc` belongs, as a string; `None` if the process
/// has ended.
fn process_of(path: &Path) -> Option<String> {
    let process = path.ancestors().nth(2).filter(|process| process.exists())?;
    Some(process.file_name()?.to_str()?.to_owned())
}

/// The length of `rtgenmsg`, padded, in bytes.
const NUMBER_HEADER_BYTES: usize = 4;
// linux/net_namespace.h, linux/rtnetlink.h and linux/if_link.h.
const NEW_NUMBER: u16 = 88;
const GET_NUMBER: u16 = 90;
const NUMBER: u16 = 1;
const DESCRIPTOR: u16 = 3;
const TARGET: u16 = 46;
