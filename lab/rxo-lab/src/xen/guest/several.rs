//! Measures several guests behind one switch, as `rxo guest` runs them: the rate and cost of each, and the
//! effect of the other guests' bulk transfers on the requests of one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result};
use rxo::Reading;
use rxo::live::DeviceOptions;
use rxo_demo::running::wire;
use rxo_peers::{Folder, Guest, GuestImage, Processor};
use rxo_testbed::{Lab, Namespace};
use serde::Serialize;

use super::{all, mbit_per_s};
use crate::guests::domain::{Treatment, switching};
use crate::guests::echo::{Echo, Latency};
use crate::guests::{TIMEOUT, at_once, boot, receive};
use crate::xen::SeveralCase;

/// The results of guests that received at the same time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Several {
    pub(crate) each: Vec<Share>,
    /// Requests to the first guest while the other guests are idle.
    pub(crate) idle: Latency,
    /// Requests to the first guest while the other guests receive; `None` for a single guest.
    pub(crate) beside_bulk: Option<Latency>,
}

/// Rate and cost of one of the guests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Share {
    pub(crate) mbit_per_s: f64,
    /// Instructions per byte of the guest's kernel and programs.
    pub(crate) instructions_a_byte: f64,
    /// `true` if the received data has the hash of the sent data.
    pub(crate) is_intact: bool,
    /// Packets on the wire per delivery to the guest's card.
    pub(crate) packets_an_aggregate: f64,
    /// 99th percentile of the time for which the first segment of a delivery was held, from its arrival on
    /// the wire, in microseconds.
    pub(crate) hold_p99_us: f64,
}

/// Measurements on a guest's own side.
struct Seen {
    mbit_per_s: f64,
    instructions_a_byte: f64,
    is_intact: bool,
}

/// Boots the guests of `case`, sends `bytes` bytes to each at the same time, and requests to the first.
pub(crate) fn measure(case: SeveralCase, bytes: usize, requests: usize) -> Result<Several> {
    let SeveralCase { system, guests: count } = case;
    let (image, lab, folder) = (GuestImage::find()?, Lab::through()?, Folder::new("xen")?);
    let sockets: Vec<_> = (0..count).map(|n| folder.guest(n)).collect();
    let nic = || wire(DeviceOptions::default());
    let treatment = Treatment { policy: system.policy(), path: system.path() };
    let domain = switching(&lab, (treatment, None), nic, (&sockets, None))?;
    let mut guests =
        at_once(sockets.iter(), |n, socket| boot(&image, Processor::Counted, socket, n))?;
    let peer = lab.peer();
    let intact = at_once(guests.iter_mut(), |n, guest| is_intact(guest, &image, peer, (n, bytes)))?;
    let short = at_once(guests.iter_mut(), |n, guest| receive(guest, peer, n, bytes / 4))?;
    let long = at_once(guests.iter_mut(), |n, guest| receive(guest, peer, n, bytes))?;
    let seen = intact.into_iter().zip(short.iter().zip(&long)).map(|(is_intact, (short, long))| {
        let more = all(&long.profile).saturating_sub(all(&short.profile));
        let instructions_a_byte = more as f64 / (bytes - bytes / 4) as f64;
        Seen { mbit_per_s: mbit_per_s(bytes, long.took), instructions_a_byte, is_intact }
    });
    let seen: Vec<_> = seen.collect();
    let (idle, beside_bulk) = requests_beside(&mut guests, peer, (bytes, requests))?;
    drop(guests);
    let totals = domain.finish()?;
    let each = seen.into_iter().zip(&totals.guests).map(|(seen, domain)| Share::of(seen, domain));
    Ok(Several { each: each.collect(), idle, beside_bulk })
}

impl Share {
    fn of(seen: Seen, Reading { host_out, engine, .. }: &Reading) -> Self {
        let Seen { mbit_per_s, instructions_a_byte, is_intact } = seen;
        Self {
            mbit_per_s,
            instructions_a_byte,
            is_intact,
            packets_an_aggregate: host_out.frames as f64 / host_out.packets.max(1) as f64,
            hold_p99_us: engine.hold_ns.quantile(0.99) as f64 / 1e3,
        }
    }
}

/// Returns `true` if the `n`-th guest receives a file of `bytes` bytes unchanged. Each guest gets another
/// file.
fn is_intact(
    guest: &mut Guest,
    image: &GuestImage,
    peer: &Namespace,
    (n, bytes): (usize, usize),
) -> Result<bool> {
    let content: Vec<u8> = (0..bytes).map(|at| (at % 251 + at / 251 + n) as u8).collect();
    Ok(guest.send(peer, &content, TIMEOUT)? == image.hash(&content)?)
}

/// Measures requests to the first guest: `count` while the other guests are idle, then as many as fit while
/// they receive.
fn requests_beside(
    guests: &mut [Guest],
    peer: &Namespace,
    (bytes, count): (usize, usize),
) -> Result<(Latency, Option<Latency>)> {
    let (first, others) = guests.split_first_mut().context("there are no guests")?;
    let mut echo = Echo::start(first, peer, 0)?;
    echo.once()?;
    let idle = Latency::of(echo.transact(count)?);
    let busy = (!others.is_empty()).then(|| {
        let receiving = AtomicUsize::new(others.len());
        thread::scope(|scope| {
            let bulk = scope.spawn(|| {
                at_once(others.iter_mut(), |n, guest| {
                    let received = receive(guest, peer, 1 + n, bytes);
                    receiving.fetch_sub(1, Ordering::Relaxed);
                    received.map(|_| ())
                })
            });
            let mut taken = vec![echo.once()?];
            while receiving.load(Ordering::Relaxed) > 0 {
                taken.push(echo.once()?);
            }
            bulk.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok::<_, anyhow::Error>(Latency::of(taken))
        })
    });
    let busy = busy.transpose()?;
    echo.finish(first)?;
    Ok((idle, busy))
}
