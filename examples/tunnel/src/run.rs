//! Opens the TUN and the socket, turns the two directions until a signal comes, and prints the figures.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rxo::driver::udp::{UdpOptions, UdpSocket};
use rxo::driver::{SubmitMode, Tap, TapKind, wait::WaitList};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::inward::Inward;
use crate::options::Options;
use crate::outward::Outward;
use crate::peer::Peer;

/// How often the protocol looks at the clock.
const TICK: Duration = Duration::from_millis(250);

/// Runs the tunnel until SIGINT or SIGTERM.
pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot wait for signals")?;
    }
    let peer = Peer::new(options)?;
    let socket = bind(options)?;
    let tun = open_tun(options)?;
    let outward = Outward::new(tun.source()?, socket.sink());
    eprintln!("rxo-tunnel: {} is up, UDP port {}", options.interface, socket.local_addr().port());
    let inward = || {
        let sink = tun.sink(SubmitMode::Auto)?;
        let mtu = options.mtu as usize;
        Inward::new(socket.source(), socket.sink(), sink, mtu, !options.no_coalescing)
    };
    let turning = Turning { peer: &peer, stop: &stop, figures: options.figures };
    if options.threads == 1 {
        return turning.turn(Some(outward), Some(inward()?));
    }
    thread::scope(|scope| {
        let out = scope.spawn(|| turning.turn(Some(outward), None));
        // The sink of a TUN stays on the thread that made it.
        let done = inward().and_then(|inward| turning.turn(None, Some(inward)));
        stop.store(true, Ordering::Relaxed);
        let Ok(out) = out.join() else { bail!("the thread from the TUN ended") };
        done.and(out)
    })
}

fn bind(options: &Options) -> Result<UdpSocket> {
    let trains = !options.no_trains;
    let udp = UdpOptions { receive_trains: trains, send_trains: trains, ..UdpOptions::default() };
    let at = |ip: std::net::IpAddr| UdpSocket::bind(SocketAddr::new(ip, options.listen_port), udp);
    // One of IPv6 speaks IPv4 too, but not every system has IPv6.
    let both = at(Ipv6Addr::UNSPECIFIED.into());
    Ok(both.or_else(|error| at(Ipv4Addr::UNSPECIFIED.into()).map_err(|_| error))?)
}

fn open_tun(options: &Options) -> Result<Tap> {
    let tun = Tap::open(&options.interface, TapKind::Tun)?;
    tun.set_mtu(options.mtu)?;
    let interface = tun.interface();
    for network in &options.address {
        interface.add_address(network.ip, network.bits)?;
    }
    interface.set_up(true)?;
    for network in &options.allowed_ips {
        interface.add_route(network.all.network_address(), network.bits)?;
    }
    Ok(tun)
}

/// What both threads need.
struct Turning<'t> {
    peer: &'t Peer,
    stop: &'t AtomicBool,
    figures: Option<u32>,
}

impl Turning<'_> {
    /// Turns the given directions until the end, then prints their figures. An error ends the other thread too.
    fn turn(&self, mut outward: Option<Outward>, mut inward: Option<Inward>) -> Result<()> {
        let result = self.loop_over(&mut outward, &mut inward);
        self.stop.store(true, Ordering::Relaxed);
        print(&outward, &inward);
        result
    }

    fn loop_over(&self, outward: &mut Option<Outward>, inward: &mut Option<Inward>) -> Result<()> {
        let every = self.figures.map(|seconds| Duration::from_secs(seconds.into()));
        let (mut ticked_at, mut printed_at) = (None, Instant::now());
        while !self.stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if ticked_at.is_none_or(|at| now - at >= TICK) {
                ticked_at = Some(now);
                inward.iter_mut().for_each(|inward| inward.on_time(self.peer));
            }
            if every.is_some_and(|every| now - printed_at >= every) {
                printed_at = now;
                print(outward, inward);
            }
            let mut list = WaitList::new();
            let out = outward.as_ref().map(|outward| outward.wait_in(&mut list));
            let into = inward.as_ref().map(|inward| inward.wait_in(&mut list));
            let ready = list.wait(Some(TICK)).context("cannot wait")?;
            if let Some(outward) =
                outward.as_mut().filter(|_| out.is_some_and(|it| ready.has_any(it)))
            {
                outward.turn(self.peer)?;
            }
            if let Some(inward) =
                inward.as_mut().filter(|_| into.is_some_and(|it| ready.has_any(it)))
            {
                inward.turn(self.peer)?;
            }
        }
        Ok(())
    }
}

fn print(outward: &Option<Outward>, inward: &Option<Inward>) {
    outward.iter().for_each(|outward| println!("{outward}"));
    inward.iter().for_each(|inward| println!("{inward}"));
}
