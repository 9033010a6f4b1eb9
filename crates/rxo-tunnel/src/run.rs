//! Opens the TUN and the socket, runs both directions until the end, and prints the figures.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rxo::DeviceError;
use rxo::driver::default_route::{self, DefaultRoutes};
use rxo::driver::udp::UdpOptions;
use rxo::driver::{SubmitMode, Tap, TapKind, wait::WaitList};
use signal_hook::{consts, flag};

use crate::control::ControlSocket;
use crate::detach;
use crate::interface::Shared;
use crate::inward::Inward;
use crate::options::Options;
use crate::outside::Outside;
use crate::outward::Outward;
use crate::uapi::Settings;

/// The interval of the protocol's timers.
const TICK: Duration = Duration::from_millis(250);

/// Runs the tunnel until SIGINT or SIGTERM, or until the interface or the control socket is removed.
pub(crate) fn run(options: &Options) -> Result<()> {
    if detach::is_waited_for() {
        detach::leave_session();
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [consts::SIGINT, consts::SIGTERM] {
        flag::register(signal, Arc::clone(&stop)).context("cannot wait for signals")?;
    }
    let settings = options.settings()?;
    let defaults = match options.allowed_ips.iter().any(|it| it.bits == 0) {
        false => None,
        true => match DefaultRoutes::prepare()? {
            // This is the process that has removed the rules.
            None => return Ok(()),
            defaults => defaults,
        },
    };
    let outside = open_socket(options, defaults.as_ref())?;
    let tun = open_tun(options, defaults.as_ref())?;
    let turning = Turning::new(options, &tun, outside, &stop);
    let control = turning.open_control(options, settings)?;
    turning.turn_all(options, control.as_ref())
}

fn open_socket(options: &Options, defaults: Option<&DefaultRoutes>) -> Result<Outside> {
    let trains = !options.no_trains;
    let udp = UdpOptions {
        receive_details: true,
        receive_trains: trains,
        send_trains: trains,
        mark: defaults.map_or(0, DefaultRoutes::mark),
        ..UdpOptions::default()
    };
    Ok(Outside::open(options.listen_port, udp)?)
}

fn open_tun(options: &Options, defaults: Option<&DefaultRoutes>) -> Result<Tap> {
    let tun = Tap::open(&options.interface, TapKind::Tun)?;
    tun.set_mtu(options.mtu)?;
    if options.private_key.is_none() {
        // Addresses, routes and the rest are the work of who starts the program, such as `wg-quick`.
        return Ok(tun);
    }
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
    tun: &'t Tap,
    shared: Arc<Shared>,
    stop: &'t AtomicBool,
    figures: Duration,
    /// `true` if more than errors is printed (`LOG_LEVEL`).
    is_verbose: bool,
}

impl<'t> Turning<'t> {
    fn new(options: &Options, tun: &'t Tap, outside: Outside, stop: &'t AtomicBool) -> Self {
        let is_verbose = env::var("LOG_LEVEL").map_or(true, |it| it != "silent" && it != "error");
        let figures = Duration::from_secs(options.figures.into());
        Self { tun, shared: Arc::new(Shared::new(outside)), stop, figures, is_verbose }
    }

    /// Applies the settings of the flags; without them, opens the control socket.
    fn open_control(
        &self,
        options: &Options,
        settings: Option<Settings>,
    ) -> Result<Option<ControlSocket>> {
        match settings {
            Some(settings) => {
                let applied = self.shared.apply(&settings);
                applied.map_or_else(|it| bail!("the settings are refused ({it:?})"), |()| Ok(None))
            }
            None => {
                let control = ControlSocket::open(&options.interface)?;
                control.serve(Arc::clone(&self.shared))?;
                Ok(Some(control))
            }
        }
    }

    /// Reports that the interface and the control socket exist, and packets are about to pass.
    fn announce(&self, options: &Options) -> Result<()> {
        if detach::is_waited_for() {
            return detach::say_ready(env::var_os("LOG_LEVEL").is_some_and(|it| it != "silent"));
        }
        if self.is_verbose {
            let port = self.shared.lock().outside.port();
            eprintln!("rxo-tunnel: {} is up, UDP port {port}", options.interface);
        }
        Ok(())
    }

    /// Opens both directions, and runs them on one thread or two.
    fn turn_all(&self, options: &Options, control: Option<&ControlSocket>) -> Result<()> {
        let (source, sink) = (self.tun.source()?, self.tun.sink(SubmitMode::Auto)?);
        let outward = Outward::new(source, &self.shared.lock().outside);
        let coalesces = !options.no_coalescing;
        let inward = Inward::new(&self.shared.lock().outside, sink, options.mtu, coalesces)?;
        // Not before everything is open, because the interface may be renamed or deleted from then on.
        self.announce(options)?;
        if options.threads == 1 {
            return self.turn(Some(outward), Some(inward), control);
        }
        thread::scope(|scope| {
            let out = scope.spawn(|| self.turn(Some(outward), None, None));
            // The sink of a TUN must stay on the thread that created it.
            let done = self.turn(None, Some(inward), control);
            self.stop.store(true, Ordering::Relaxed);
            let Ok(out) = out.join() else { bail!("the thread from the TUN ended") };
            done.and(out)
        })
    }

    /// Runs the given directions until the end, then prints their figures. An error ends the other thread
    /// too. An interface that was deleted is no error.
    fn turn(
        &self,
        mut outward: Option<Outward>,
        mut inward: Option<Inward>,
        control: Option<&ControlSocket>,
    ) -> Result<()> {
        let mut tick_at = Instant::now();
        let (mut print_at, mut result) = (tick_at + self.figures, Ok(()));
        while result.is_ok() && !self.stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if now >= tick_at {
                tick_at = now + TICK;
                if control.is_some_and(|control| !control.exists()) {
                    break;
                }
                inward.iter_mut().for_each(|inward| self.on_time(inward));
            }
            if now >= print_at {
                print_at = now + self.figures;
                self.print(&outward, &inward);
            }
            result = self.turn_once(&mut outward, &mut inward);
        }
        self.stop.store(true, Ordering::Relaxed);
        self.print(&outward, &inward);
        match result {
            Err(error) if matches!(error.downcast_ref(), Some(DeviceError::Gone(_))) => Ok(()),
            result => result,
        }
    }

    fn on_time(&self, inward: &mut Inward) {
        // An interface that was deleted ends the next turn.
        let mtu = self.tun.interface().mtu().unwrap_or(0);
        inward.on_time(&self.shared, mtu);
    }

    fn turn_once(&self, out: &mut Option<Outward>, into: &mut Option<Inward>) -> Result<()> {
        let mut list = WaitList::new();
        out.iter().for_each(|out| out.wait_in(&mut list));
        into.iter().for_each(|into| into.wait_in(&mut list));
        list.wait(Some(TICK)).context("cannot wait")?;
        // A direction without input costs one system call.
        out.iter_mut().try_for_each(|out| out.turn(&self.shared))?;
        Ok(into.iter_mut().try_for_each(|into| into.turn(&self.shared))?)
    }

    fn print(&self, outward: &Option<Outward>, inward: &Option<Inward>) {
        if self.is_verbose {
            outward.iter().for_each(|outward| println!("{outward}"));
            inward.iter().for_each(|inward| println!("{inward}"));
        }
    }
}
