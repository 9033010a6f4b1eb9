//! Tests what a compromised process could do. Each action is tried on a thread that is confined like that of
//! a command, and first on a thread that is not confined, so that a refusal is meaningful.
#![allow(clippy::unwrap_used, reason = "helpers of tests, which the lint takes for other code")]
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod attempts;
mod raw;
mod scene;

use std::io;
use std::thread;

use rxo_confine::{Access, Confinement, InForce, User};

use crate::attempts::{ATTEMPTS, Attempt, Needs};
use crate::scene::Scene;

/// Tries all attempts on a thread with `confinement`. Returns those that succeed, and the limits that the
/// kernel has accepted.
fn succeed(confinement: Confinement, scene: &Scene) -> (Vec<&'static str>, InForce) {
    let scene = scene.clone();
    let tried = thread::spawn(move || {
        let in_force = confinement.apply().unwrap();
        let done = ATTEMPTS.iter().filter(|attempt| is_done(attempt, &scene));
        (done.map(|attempt| attempt.name).collect(), in_force)
    });
    tried.join().unwrap()
}

/// Returns `true` if an attempt succeeds. An error other than a refusal fails the test.
fn is_done(attempt: &Attempt, scene: &Scene) -> bool {
    match (attempt.run)(scene) {
        Ok(()) => true,
        Err(error) if is_refusal(&error) => false,
        Err(error) => panic!("{}: {error}", attempt.name),
    }
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES))
}

/// Removes the names of attempts that only Landlock can refuse, if the kernel has none.
fn expected(names: &[&'static str], in_force: &InForce) -> Vec<&'static str> {
    if !in_force.limits_calls() {
        eprintln!("not run: this kernel has no seccomp filters");
    }
    if !in_force.limits_files() {
        eprintln!("not run: this kernel has no Landlock, so paths are not told apart");
    }
    let all = ATTEMPTS.iter().map(|attempt| attempt.name);
    all.filter(|name| names.contains(name)).collect()
}

fn assert_succeed(scene: &Scene, confinement: Confinement, names: &[&'static str]) {
    let (done, in_force) = succeed(confinement, scene);
    let expected = expected(names, &in_force);
    if in_force.limits_calls() && in_force.limits_files() {
        assert_eq!(done, expected);
    }
}

#[test]
fn whoever_is_not_confined_gets_everything_through_that_the_test_may() {
    let scene = Scene::new();
    let open = Confinement { is_open: true, ..Confinement::default() };
    // Each attempt runs on a separate thread, because some of them change it.
    for attempt in ATTEMPTS.iter().filter(|attempt| attempt.needs.are_met()) {
        let (open, scene) = (open.clone(), scene.clone());
        let tried = thread::spawn(move || {
            open.apply().unwrap();
            is_done(attempt, &scene)
        });
        assert!(tried.join().unwrap(), "{}", attempt.name);
    }
    if !Needs::Root.are_met() {
        eprintln!("not run: what only root can do without a sandbox");
    }
}

#[test]
fn a_worker_gets_nothing_through_but_threads_and_its_memory() {
    assert_succeed(&Scene::new(), Confinement::worker(), &["start a thread", "map memory"]);
}

#[test]
fn a_server_reads_its_folder_and_nothing_else() {
    let scene = Scene::new();
    let paths = vec![(scene.folder(), Access::Read)];
    let names = ["read in the folder", "start a thread", "map memory"];
    assert_succeed(&scene, Confinement::host(paths), &names);
}

#[test]
fn a_receiver_writes_into_its_folder_and_nowhere_else() {
    let scene = Scene::new();
    let paths = vec![(scene.folder(), Access::Write)];
    let names = ["read in the folder", "write in the folder", "start a thread", "map memory"];
    assert_succeed(&scene, Confinement::host(paths), &names);
}

#[test]
fn a_remover_removes_and_writes_nothing() {
    let scene = Scene::new();
    let (folder, victim) = (scene.folder(), scene.folder().join("socket"));
    std::fs::write(&victim, "").unwrap();
    let confinement = Confinement::remover(Vec::new(), vec![folder]);
    let (done, in_force) = succeed(confinement.clone(), &scene);
    let names = ["read in the folder", "a unix socket", "start a thread", "map memory"];
    if in_force.limits_calls() && in_force.limits_files() {
        assert_eq!(done, expected(&names, &in_force));
    }
    let removed = thread::spawn(move || {
        confinement.apply().unwrap();
        std::fs::remove_file(victim)
    });
    removed.join().unwrap().unwrap();
}

/// The device of `virtio:PATH` reconnects. Seccomp cannot tell its socket from other unix sockets, which
/// differ only in their path.
#[test]
fn what_connects_again_makes_unix_sockets_and_no_others() {
    let names = ["a unix socket", "start a thread", "map memory"];
    assert_succeed(&Scene::new(), Confinement::host(Vec::new()).with_connections(true), &names);
}

#[test]
fn whoever_is_confined_becomes_nobody_else() {
    let tried = thread::spawn(|| {
        Confinement::worker().apply().unwrap();
        let user = Some(User::find("54321:12345").unwrap());
        let said = Confinement { user, is_open: true, ..Confinement::default() }.apply();
        said.unwrap_err().to_string()
    });
    let said = tried.join().unwrap();
    assert!(said.starts_with("cannot become user 54321:12345: "), "{said}");
}

/// A caller with `CAP_SETUID` need not be root, and the kernel takes capabilities away only from root.
#[test]
fn a_caller_that_is_not_root_loses_its_capabilities_with_its_user() {
    if !rustix::process::geteuid().is_root() {
        println!("not run: needs root");
        return;
    }
    let kept = std::thread::spawn(|| {
        use rustix::process::Uid;
        use rustix::thread::{
            CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities,
            set_thread_res_uid,
        };
        set_keep_capabilities(true).unwrap();
        let other = Uid::from_raw(54_321);
        set_thread_res_uid(other, other, other).unwrap();
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::NET_ADMIN;
        let inheritable = CapabilitySet::empty();
        let sets = CapabilitySets { effective: needed, permitted: needed, inheritable };
        set_capabilities(None, sets).unwrap();
        let user = Some(User::find("12345:12345").unwrap());
        Confinement { user, is_open: true, ..Confinement::default() }.apply().unwrap();
        let left = capabilities(None).unwrap();
        left.permitted | left.effective
    });
    assert_eq!(kept.join().unwrap(), rustix::thread::CapabilitySet::empty());
}

/// A worker that may open `xdp:IF` again can load its own program, but cannot access the programs of others.
#[test]
fn what_attaches_programs_opens_their_sockets_and_no_others_do() {
    if !Needs::Root.are_met() {
        eprintln!("not run: only root makes AF_XDP sockets without a sandbox");
        return;
    }
    let scene = Scene::new();
    for attaches in [false, true] {
        let confinement = Confinement::worker_that_reopens(Vec::new()).with_programs(attaches);
        let (done, in_force) = succeed(confinement, &scene);
        if in_force.limits_calls() {
            assert_eq!(done.contains(&"an AF_XDP socket"), attaches);
            assert!(!done.contains(&"a program of BPF"), "{attaches}");
        }
    }
    assert_eq!(Confinement::worker().with_programs(true), Confinement::worker());
}

/// The process changes interfaces, so it may use sockets that query them, but not TCP.
#[test]
fn what_restores_interfaces_starts_no_program_and_reaches_no_process() {
    let scene = Scene::new();
    let interfaces = ["read in /proc", "a unix socket", "start a thread", "map memory"];
    let mut devices = interfaces.to_vec();
    devices.push("a queue of io_uring");
    let mut keeper = interfaces.to_vec();
    // The process that the restorer watches.
    keeper.push("kill a sibling");
    let sibling = scene.sibling();
    let rows = [
        (Confinement::keeper(sibling, Vec::new(), Vec::new()), keeper),
        (Confinement::restorer(Vec::new(), Vec::new()), interfaces.to_vec()),
        (Confinement::worker_that_reopens(Vec::new()), devices),
    ];
    for (confinement, names) in rows {
        let (done, in_force) = succeed(confinement, &scene);
        // Root in the test may create packet sockets and write network settings; other users may not.
        let rest =
            ["a packet socket", "write a setting of the network", "the interface taken down"];
        let done: Vec<_> = done.into_iter().filter(|name| !rest.contains(name)).collect();
        if in_force.limits_calls() && in_force.limits_files() {
            assert_eq!(done, expected(&names, &in_force));
        }
    }
}
