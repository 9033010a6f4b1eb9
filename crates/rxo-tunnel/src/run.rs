//! Opens the TUN and the socket, runs both directions until a signal arrives, and prints the figures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rxo::driver::default_route::{self, DefaultRoutes};
use rxo::driver::udp::{UdpOptions, UdpSocket};
use rxo::driver::{SubmitMode, Tap, TapKind, wait::WaitList};
use signal_hook::{consts, flag};

use crate::inward::Inward;
use crate::options::Options;
use crate::outward::Outward;
use crate::peer::Peer;

/// The interval of the protocol's timers.
const TICK: Duration = Duration::from_millis(250);

/// Runs the tunnel until SIGINT or SIGTERM.
pub(crate) fn run(options: &Options) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [consts::SIGINT, consts::SIGTERM] {
        flag::register(signal, Arc::clone(&stop)).context("cannot wait for signals")?;
    }
    let (peer, trains) = (Peer::new(options)?, !options.no_trains);
    let defaults = match options.allowed_ips.iter().any(|it| it.bits == 0) {
        false => None,
        true => match DefaultRoutes::prepare()? {
            // This is the process that has removed the rules.
            None => return Ok(()),
            defaults => defaults,
        },
    };
    let udp = UdpOptions {
        receive_trains: trains,
        send_trains: trains,
        mark: defaults.as_ref().map_or(0, DefaultRoutes::mark),
        ..UdpOptions::default()
    };
    let socket = UdpSocket::bind_any(options.listen_port, udp)?;
    let tun = open_tun(options, defaults.as_ref())?;
    let outward = Outward::new(tun.source()?, socket.sink());
    eprintln!("rxo-tunnel: {} is up, UDP port {}", options.interface, socket.local_addr().port());
    let inward = || {
        let sink = tun.sink(SubmitMode::Auto)?;
        let socket = (socket.source(), socket.sink());
        Inward::new(socket, sink, options.mtu, !options.no_coalescing)
    };
    let figures = Duration::from_secs(options.figures.into());
    let turning = Turning { peer: &peer, stop: &stop, figures };
    if options.threads == 1 {
        return turning.turn(Some(outward), Some(inward()?));
    }
    thread::scope(|scope| {
        let out = scope.spawn(|| turning.turn(Some(outward), None));
        // The sink of a TUN must stay on the thread that created it.
        let done = inward().and_then(|inward| turning.turn(None, Some(inward)));
        stop.store(true, Ordering::Relaxed);
        let Ok(out) = out.join() else { bail!("the thread from the TUN ended") };
        done.and(out)
    })
}

fn open_tun(options: &Options, defaults: Option<&DefaultRoutes>) -> Result<Tap> {
    let tun = Tap::open(&options.interface, TapKind::Tun)?;
    tun.set_mtu(options.mtu)?;
    let interface = tun.interface();
    options.address.iter().try_for_each(|it| interface.add_address(it.ip, it.bits))?;
    interface.set_up(true)?;
    for it in &options.allowed_ips {
        match defaults {
            Some(defaults) if it.bits == 0 => defaults.add(interface, it.ip)?,
            // The kernel has made the route to a network in which the interface has an address.
            _ if options.address.iter().any(|own| own.all == it.all) => {}
            _ => interface.add_route(it.all.network_address(), it.bits)?,
        }
    }
    if let Some(strict) = defaults.and_then(|_| default_route::strict_interface()) {
        eprintln!(
            "rxo-tunnel: net.ipv4.conf.{strict}.rp_filter is 1, so the system may drop what the peer sends; set it to 2"
        );
    }
    Ok(tun)
}

/// The state that both threads share.
struct Turning<'t> {
    peer: &'t Peer,
    stop: &'t AtomicBool,
    figures: Duration,
}

impl Turning<'_> {
    /// Runs the given directions until the end, then prints their figures. An error ends the other thread
    /// too.
    fn turn(&self, mut outward: Option<Outward>, mut inward: Option<Inward>) -> Result<()> {
        let mut tick_at = Instant::now();
        let (mut print_at, mut result) = (tick_at + self.figures, Ok(()));
        while result.is_ok() && !self.stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now >= tick_at {
                tick_at = now + TICK;
                inward.iter_mut().for_each(|inward| inward.on_time(self.peer));
            }
            if now >= print_at {
                print_at = now + self.figures;
                print(&outward, &inward);
            }
            result = self.turn_once(&mut outward, &mut inward);
        }
        self.stop.store(true, Ordering::Relaxed);
        print(&outward, &inward);
        result
    }

    fn turn_once(&self, out: &mut Option<Outward>, into: &mut Option<Inward>) -> Result<()> {
        let mut list = WaitList::new();
        out.iter().for_each(|out| out.wait_in(&mut list));
        into.iter().for_each(|into| into.wait_in(&mut list));
        list.wait(Some(TICK)).context("cannot wait")?;
        // A direction without input costs one system call.
        out.iter_mut().try_for_each(|out| out.turn(self.peer))?;
        Ok(into.iter_mut().try_for_each(|into| into.turn(self.peer))?)
    }
}

fn print(outward: &Option<Outward>, inward: &Option<Inward>) {
    outward.iter().for_each(|outward| println!("{outward}"));
    inward.iter().for_each(|inward| println!("{inward}"));
}
