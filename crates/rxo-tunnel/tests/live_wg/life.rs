//! The process in the background: its start, and what ends it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use rxo_testbed::{Namespace, until};

use crate::background::{Deleted, await_end, process_of, socket_of};
use crate::node::{PROGRAM, run, try_run, unused_name};

pub(crate) fn background() {
    let (net, interface) = (Namespace::new("alone").unwrap(), unused_name());
    let _deleted = Deleted(&net, &interface);
    let (start, socket) = (format!("{PROGRAM} {interface}"), socket_of(&interface));
    let has_interface = || net.interface(&interface).counters().is_ok();
    let remove_socket = || fs::remove_file(&socket).unwrap();
    let delete = || net.interface(&interface).delete().unwrap();
    let ends: [&dyn Fn(); 2] = [&remove_socket, &delete];
    for end in ends {
        assert_eq!(run(&net, &start), "");
        // Everything is there when the first process returns.
        assert!(has_interface() && Path::new(&socket).exists());
        run(&net, &format!("wg show {interface}"));
        let process = process_of(&interface);
        let said = try_run(&net, &start, "").unwrap_err();
        assert!(said.contains("another program serves") && said.lines().count() == 1, "{said}");
        end();
        await_end(process);
        assert!(!has_interface() && !Path::new(&socket).exists());
    }
}

pub(crate) fn a_socket_left_behind_is_replaced() {
    let (net, interface) = (Namespace::new("alone").unwrap(), unused_name());
    let _deleted = (Deleted(&net, &interface), Deleted(&net, "other"));
    fs::create_dir_all("/run/wireguard").unwrap();
    drop(UnixListener::bind(socket_of(&interface)).unwrap());
    run(&net, &format!("{PROGRAM} {interface}"));
    let process = process_of(&interface);
    run(&net, &format!("wg show {interface}"));
    // The address of a socket that another process serves is left alone.
    net.interface(&interface).rename("other").unwrap();
    let said = try_run(&net, &format!("{PROGRAM} {interface}"), "").unwrap_err();
    assert!(said.contains("another program serves") && said.lines().count() == 1, "{said}");
    net.interface("other").delete().unwrap();
    await_end(process);
    until(|| Ok(!Path::new(&socket_of(&interface)).exists())).unwrap().unwrap();
}

pub(crate) fn a_variable_keeps_it_in_the_foreground() {
    let (net, interface) = (Namespace::new("alone").unwrap(), unused_name());
    let mut command = Command::new(PROGRAM);
    command.arg(&interface).env("WG_PROCESS_FOREGROUND", "1").stderr(Stdio::piped());
    let mut program = net.run(|| command.stdout(Stdio::null()).spawn()).unwrap().unwrap();
    let mut said = String::new();
    BufReader::new(program.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    let is_running = program.try_wait().unwrap().is_none();
    fs::remove_file(socket_of(&interface)).unwrap();
    assert!(program.wait().unwrap().success() && is_running);
    assert!(said.contains("is up, UDP port"), "{said}");
}
