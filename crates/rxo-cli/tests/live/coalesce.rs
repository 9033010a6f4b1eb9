//! With `--coalesce auto`, datagrams that cannot be coalesced disable coalescing, a transfer enables it
//! again, and nothing is lost.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, Namespace};
use serde_json::Value;

use crate::Test;
use crate::control::asked;
use crate::process::{Rxo, wait_until};
use crate::report::Scratch;

pub(crate) const TESTS: &[Test] = &[("what_does_not_pay_is_switched_off_until_it_pays", auto)];

/// Number of flows: consecutive datagrams are of different flows, so that none is merged within a poll.
const FLOWS: usize = 256;
const DISCARD: u16 = 9;

/// Sends unmergeable datagrams from the peer to the host until `stop` is set.
fn send_singles(peer: &Namespace, lab: &Lab, stop: &AtomicBool) {
    let bind = |_| UdpSocket::bind("0.0.0.0:0").unwrap();
    let sockets: Vec<_> = peer.run(|| (0..FLOWS).map(bind).collect()).unwrap();
    let to = (lab.host_address(), DISCARD);
    for (socket, number) in sockets.iter().cycle().zip(0_usize..) {
        // Datagrams of one flow grow in size, which no rule merges.
        _ = socket.send_to(&[7; 1_400][..8 + number / FLOWS % 1_300], to);
        if number % FLOWS == 0 && stop.load(Ordering::Relaxed) {
            return;
        }
    }
}

fn auto() {
    let (scratch, lab) = (Scratch::new("coalesce-auto"), Lab::through().unwrap());
    let socket = scratch.file("run.sock");
    let flags = format!(
        "--nic packet:wire0 --host tap:rxo0 --stats 0s --coalesce auto --control {}",
        socket.display()
    );
    let (rxo, configuration) = Rxo::start(lab.host(), &flags);
    assert_eq!(configuration["coalesce"], "auto");
    lab.attach_host("rxo0").unwrap();
    let state = || asked(&socket, "counters")["coalescing"].take();
    assert_eq!((&state()["asked"], &state()["on"]), (&"auto".into(), &true.into()));

    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let singles = scope.spawn(|| send_singles(lab.peer(), &lab, &stop));
        wait_until("it is switched off", || state()["switched_off"].as_u64() > Some(0));
        assert_eq!(asked(&socket, "coalesce")["host"]["asked"], "auto");
        stop.store(true, Ordering::Relaxed);
        singles.join().unwrap();
    });
    let config = BulkConfig { connections: 2, ..BulkConfig::default() };
    let transfer =
        BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config).unwrap();
    wait_until("it is switched on again", || state()["switched_on"].as_u64() > Some(0));
    // Every byte is compared with the byte that was sent.
    assert!(transfer.stop().unwrap().is_intact());

    rxo.signal("TERM");
    let (code, lines, said) = rxo.end();
    assert_eq!(code, Some(0), "{said}");
    let told = |what| said.lines().filter(|line| line.contains(what)).count();
    assert!(told("coalescing has switched itself off, because it does not pay") >= 1, "{said}");
    assert!(told("coalescing has switched itself on again") >= 1, "{said}");
    let totals: &Value = lines.last().unwrap();
    assert!(totals["coalescing"]["passed"].as_u64() > Some(0), "{totals}");
    assert_eq!(totals["host_out"]["dropped"], 0, "{totals}");
    assert!(totals["imbalance"].as_object().unwrap().values().all(|it| *it == 0), "{totals}");
}
