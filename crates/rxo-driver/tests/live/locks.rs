//! Tests of locks, with another user of the system who tries to keep rxo from starting.

use std::fs::{self, File, TryLockError};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rxo_driver::{Access, Listener, Lock};

use crate::Test;
use crate::network::LONG;

pub(crate) const TESTS: &[Test] = &[
    ("no_other_user_can_open_the_file_of_a_lock", files_are_closed),
    ("no_other_user_can_take_the_name_of_a_lock", names_do_not_matter),
    ("no_other_user_can_keep_a_socket_from_its_folder", folders_do_not_matter),
];

/// `true` if this process is root of the whole system and so can become another user. Prints a line if it is
/// not.
pub(crate) fn can_run() -> bool {
    let is_root = fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]));
    if !is_root {
        eprintln!("the tests of locks are not run: they need root of the system, and another user");
    }
    is_root
}

/// A process of a user without any privilege.
struct Nobody(Child);

const NOBODY: u32 = 65_534;

impl Nobody {
    fn runs(words: &str) -> Self {
        let mut words = words.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.uid(NOBODY).gid(NOBODY).spawn().unwrap())
    }

    fn succeeds(words: &str) -> bool {
        Self::runs(words).0.wait().unwrap().success()
    }
}

impl Drop for Nobody {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn files_are_closed() {
    let held = Lock::try_take("of-a-test-7").unwrap().expect("it is free");
    let files: Vec<_> =
        fs::read_dir("/run/rxo").unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.iter().any(|file| file.to_string_lossy().ends_with("-of-a-test-7.lock")));
    for file in files.iter().map(|file| file.as_path()).chain([Path::new("/run/rxo")]) {
        assert!(!Nobody::succeeds(&format!("flock --shared {} true", file.display())));
    }
    assert!(Nobody::succeeds("flock --shared /run true"), "it can lock what it can read");
    assert!(Lock::try_take("of-a-test-7").unwrap().is_none(), "it is held");
    drop(held);
    assert!(Lock::try_take("of-a-test-7").unwrap().is_some());
}

/// Other users cannot prevent a lock by holding names in the abstract socket namespace, which is open to all.
fn names_do_not_matter() {
    let names = ["rxo-interface-77777", "rxo interface-77777"];
    let bind = |name| UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name).unwrap());
    let _taken = names.map(|name| bind(name).unwrap());
    assert!(Lock::try_take("interface-77777").unwrap().is_some());
}

fn folders_do_not_matter() {
    let path = format!("/run/rxo-of-a-test-{}.sock", std::process::id());
    let begun = std::time::Instant::now();
    let nobody = Nobody::runs("flock --no-fork /run sleep 1000");
    while !matches!(File::open("/run").unwrap().try_lock(), Err(TryLockError::WouldBlock)) {
        assert!(begun.elapsed() < LONG, "nobody does not lock the folder");
    }
    let listener = Listener::bind(&path, Path::new(&path), Access::OwnerOnly).unwrap();
    drop((listener, nobody));
    assert!(!Path::new(&path).exists());
}
