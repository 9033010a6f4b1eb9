//! Opens the TUN and the UDP socket, runs both directions of the tunnel until it ends, and prints its counters.

use std::env;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rxo::driver::default_route::{self, DefaultRoutes};
use rxo::driver::udp::{Outbox, UdpOptions};
use rxo::driver::wait::{self, Interest, WaitList};
use rxo::driver::{DeviceBuf, DeviceSink, SubmitMode, Tap, TapKind, TapSource};
use rxo::{DeviceError, FrameSink};
use signal_hook::{consts, flag};

use crate::control::ControlSocket;
use crate::detach;
use crate::interface::Shared;
use crate::inward::{self, Decryptor, Inward};
use crate::options::Options;
use crate::outside::Outside;
use crate::outward::{Encryptor, Outward};
use crate::uapi::Settings;
use crate::waiting::{TICK, lock};

/// The size in bytes of the outbox for messages of the protocol's timers: enough for hundreds of peers while the socket
/// is full.
const OUTBOX_BYTES: usize = 1 << 16;

/// A guard that tells all threads to end when it is dropped.
struct Ends<'s>(&'s AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

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
    let takes_all = options.allowed_ips.iter().any(|it| it.bits == 0);
    let defaults = if takes_all { DefaultRoutes::prepare()? } else { None };
    if takes_all && defaults.is_none() {
        // This is the process that has removed the rules.
        return Ok(());
    }
    let outside = open_socket(options, defaults.as_ref())?;
    let tun = open_tun(options, defaults.as_ref())?;
    let turning = Turning::new(options, &tun, outside, &stop)?;
    let control = turning.open_control(settings)?;
    turning.turn_all(control.as_ref())
}

fn open_socket(options: &Options, defaults: Option<&DefaultRoutes>) -> Result<Outside> {
    let trains = !options.no_trains;
    let udp = UdpOptions {
        receive_details: true,
        receive_trains: trains,
        send_trains: trains,
        mark: defaults.map_or(0, DefaultRoutes::mark),
        messages: inward::messages(options.inward_threads()),
        ..UdpOptions::default()
    };
    Ok(Outside::open(options.listen_port, udp)?)
}

fn open_tun(options: &Options, defaults: Option<&DefaultRoutes>) -> Result<Tap> {
    let tun = Tap::open(&options.interface, TapKind::Tun)?;
    tun.set_mtu(options.mtu)?;
    if options.private_key.is_none() {
        // The caller of the program, such as `wg-quick`, sets the addresses and routes.
        return Ok(tun);
    }
    let interface = tun.interface();
    options.address.iter().try_for_each(|it| interface.add_address(it.ip, it.bits))?;
    interface.set_up(true)?;
    for it in &options.allowed_ips {
        match defaults {
            Some(defaults) if it.bits == 0 => defaults.add(interface, it.ip)?,
            // The kernel already added the route to a network in which the interface has an address.
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

/// The state that all threads share.
struct Turning<'t> {
    options: &'t Options,
    tun: &'t Tap,
    shared: Arc<Shared>,
    outward: Outward<TapSource>,
    inward: Inward<DeviceSink>,
    stop: &'t AtomicBool,
    /// `true` if more than errors is printed (`LOG_LEVEL`).
    is_verbose: bool,
}

/// The memory of a thread that encrypts packets from the TUN.
type Out = Encryptor<DeviceBuf>;

impl<'t> Turning<'t> {
    fn new(
        options: &'t Options,
        tun: &'t Tap,
        outside: Outside,
        stop: &'t AtomicBool,
    ) -> Result<Self> {
        let is_verbose = env::var("LOG_LEVEL").map_or(true, |it| it != "silent" && it != "error");
        // Only one thread may write by io_uring.
        let alone = options.inward_threads() == 1;
        let sink = tun.sink(if alone { SubmitMode::Auto } else { SubmitMode::Writev })?;
        let outward = Outward::new(tun.source()?, outside.socket());
        let inward = Inward::new(sink, options.mtu, !options.no_coalescing)?;
        let shared = Arc::new(Shared::new(outside));
        Ok(Self { options, tun, shared, outward, inward, stop, is_verbose })
    }

    /// Applies the settings of the flags; without them, opens the control socket.
    fn open_control(&self, settings: Option<Settings>) -> Result<Option<ControlSocket>> {
        let Some(settings) = settings else {
            let control = ControlSocket::open(&self.options.interface)?;
            control.serve(Arc::clone(&self.shared))?;
            return Ok(Some(control));
        };
        let applied = self.shared.apply(&settings);
        applied.map_or_else(|it| bail!("the settings are refused ({it:?})"), |()| Ok(None))
    }

    /// Reports that the interface and the control socket exist, and packets are about to pass.
    fn announce(&self) -> Result<()> {
        if detach::is_waited_for() {
            return detach::say_ready(env::var_os("LOG_LEVEL").is_some_and(|it| it != "silent"));
        }
        if self.is_verbose {
            let port = self.shared.read().outside.port();
            eprintln!("rxo-tunnel: {} is up, UDP port {port}", self.options.interface);
        }
        Ok(())
    }

    /// Runs both directions on one thread, or each on half of the threads, until the end, and prints the figures.
    fn turn_all(&self, control: Option<&ControlSocket>) -> Result<()> {
        let (threads, inward) = (usize::from(self.options.threads), self.options.inward_threads());
        let memory = |n| {
            let into = || Decryptor::new(self.shared.read().outside.socket());
            ((n >= inward || threads == 1).then(Encryptor::new), (n < inward).then(into))
        };
        let all: Vec<_> = (0..threads).map(memory).collect();
        // Not before everything is open, because the interface may be renamed or deleted from then on.
        self.announce()?;
        let done = thread::scope(|scope| {
            // A panic of this thread ends the others, too.
            let end = Ends(self.stop);
            let start = |(out, into)| scope.spawn(move || self.turn(out, into));
            let threads: Vec<_> = all.into_iter().map(start).collect();
            self.keep_time(control, || threads.iter().any(ScopedJoinHandle::is_finished));
            drop(end);
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| bail!("a thread that moves packets has panicked"))
            })
        });
        self.print();
        done
    }

    /// Does what is due four times a second: timers of the protocol, and figures. Returns when the program must end, one of
    /// the threads has ended, or the control socket is gone.
    fn keep_time(&self, control: Option<&ControlSocket>, has_ended: impl Fn() -> bool) {
        let figures = Duration::from_secs(self.options.figures.into());
        let (mut outbox, mut print_at) = (Outbox::new(OUTBOX_BYTES), Instant::now() + figures);
        while !self.stop.load(Ordering::Relaxed)
            && !has_ended()
            && control.is_none_or(ControlSocket::exists)
        {
            // An interface that was deleted ends the threads.
            self.inward.follow_mtu(self.tun.interface().mtu().unwrap_or(0));
            self.shared.read().on_time(&mut outbox);
            if Instant::now() >= print_at {
                print_at += figures;
                self.print();
            }
            wait::pause(TICK);
        }
    }

    /// Moves packets until `stop` is set or the interface is deleted, which is not an error.
    fn turn(&self, mut out: Option<Out>, mut into: Option<Decryptor>) -> Result<()> {
        while !self.stop.load(Ordering::Relaxed) {
            match self.turn_once(&mut out, &mut into) {
                Err(error) if matches!(error.downcast_ref(), Some(DeviceError::Gone(_))) => break,
                done => done?,
            }
        }
        Ok(())
    }

    fn turn_once(&self, out: &mut Option<Out>, into: &mut Option<Decryptor>) -> Result<()> {
        let mut stop = Some(self.stop);
        if let (Some(out), Some(into)) = (&*out, &*into) {
            stop = None;
            self.wait(out, into)?;
        }
        if let Some(out) = out {
            // A direction without input costs one system call.
            while self.outward.turn(out, &self.shared, stop)? && stop.is_none() {}
        }
        into.iter_mut().try_for_each(|into| self.inward.turn(into, &self.shared, stop))
    }

    /// Waits for input of each direction. For a direction whose output was full, waits for space in the output
    /// instead. Returns after [`TICK`] at the latest.
    fn wait(&self, out: &Out, into: &Decryptor) -> Result<()> {
        let (entry, exit) = (lock(&self.outward.entry), self.outward.exit.lock());
        let (mut list, other_exit) = (WaitList::new(), self.inward.exit.lock());
        let (sink, is_blocked) = (other_exit.sink(), out.is_blocked());
        list.add(is_blocked.then_some(&exit.udp), Interest::Writable);
        list.add((!is_blocked).then_some(&entry.tun), Interest::Readable);
        list.add(sink.is_blocked().then_some(sink), Interest::Writable);
        list.add((!sink.is_blocked()).then_some(&into.udp), Interest::Readable);
        list.wait(Some(TICK)).map(drop).context("cannot wait")
    }

    fn print(&self) {
        if self.is_verbose {
            // An error is ignored, because the reader of standard output may have ended.
            _ = writeln!(io::stdout(), "{}\n{}", self.outward, self.inward);
        }
    }
}
