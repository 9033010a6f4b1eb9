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
use rxo::driver::{DeviceBuf, SubmitMode, Tap, TapKind, TapSource};
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
    let defaults = match options.allowed_ips.iter().any(|it| it.bits == 0) {
        false => None,
        true => match DefaultRoutes::prepare()? {
            // This process was only started to remove the routing rules, which is done.
            None => return Ok(()),
            defaults => defaults,
        },
    };
    let outside = open_socket(options, defaults.as_ref())?;
    let tun = open_tun(options, defaults.as_ref())?;
    let turning = Turning::new(options, &tun, outside, &stop)?;
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
    tun: &'t Tap,
    shared: Arc<Shared>,
    outward: Outward<TapSource>,
    inward: Inward,
    stop: &'t AtomicBool,
    figures: Duration,
    /// `true` if notices and counters are printed, not only errors (environment variable `LOG_LEVEL`).
    is_verbose: bool,
}

/// The memory of a thread that encrypts packets from the TUN.
type Out = Encryptor<DeviceBuf>;

impl<'t> Turning<'t> {
    fn new(
        options: &Options,
        tun: &'t Tap,
        outside: Outside,
        stop: &'t AtomicBool,
    ) -> Result<Self> {
        let is_verbose = env::var("LOG_LEVEL").map_or(true, |it| it != "silent" && it != "error");
        let figures = Duration::from_secs(options.figures.into());
        // Only one thread may write by io_uring.
        let alone = options.inward_threads() == 1;
        let sink = tun.sink(if alone { SubmitMode::Auto } else { SubmitMode::Writev })?;
        let outward = Outward::new(tun.source()?, outside.socket());
        let inward = Inward::new(sink, options.mtu, !options.no_coalescing)?;
        let shared = Arc::new(Shared::new(outside));
        Ok(Self { tun, shared, outward, inward, stop, figures, is_verbose })
    }

    /// Applies `settings`, which come from the flags, and returns `None`. Without settings, opens and returns
    /// the control socket.
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

    /// Reports that the tunnel is ready: the interface and the control socket exist.
    fn announce(&self, options: &Options) -> Result<()> {
        if detach::is_waited_for() {
            return detach::say_ready(env::var_os("LOG_LEVEL").is_some_and(|it| it != "silent"));
        }
        if self.is_verbose {
            let port = self.shared.read().outside.port();
            eprintln!("rxo-tunnel: {} is up, UDP port {port}", options.interface);
        }
        Ok(())
    }

    /// Runs both directions until the tunnel ends: on one thread, or each direction on half of the threads. Then prints
    /// the counters.
    fn turn_all(&self, options: &Options, control: Option<&ControlSocket>) -> Result<()> {
        let (threads, inward) = (usize::from(options.threads), options.inward_threads());
        let mut all = Vec::new();
        for n in 0..threads {
            let interface = self.shared.read();
            let into = (n < inward).then(|| Decryptor::new(interface.outside.socket()));
            all.push(((n >= inward || threads == 1).then(Encryptor::new), into));
        }
        // Announced only when everything is open, because the user may then rename or delete the interface.
        self.announce(options)?;
        let done = thread::scope(|scope| {
            // A panic of this thread ends the others, too.
            let _end = Ends(self.stop);
            let start = |(out, into)| scope.spawn(move || self.turn(out, into));
            let threads: Vec<_> = all.into_iter().map(start).collect();
            self.keep_time(control, || threads.iter().any(ScopedJoinHandle::is_finished));
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| bail!("a thread that moves packets has panicked"))
            })
        });
        self.print();
        done
    }

    /// Runs the protocol timers four times per second, and prints the counters at the configured interval. Ends all
    /// threads when one thread has ended or the control socket was removed.
    fn keep_time(&self, control: Option<&ControlSocket>, has_ended: impl Fn() -> bool) {
        let (mut answers, mut outbox) = (None, Outbox::new(OUTBOX_BYTES));
        let (mut generation, mut print_at) = (u64::MAX, Instant::now() + self.figures);
        while !self.stop.load(Ordering::Relaxed) {
            // The MTU is unknown only if the interface was deleted; the packet threads then end by themselves.
            self.inward.follow_mtu(self.tun.interface().mtu().unwrap_or(0));
            let interface = self.shared.read();
            if let Some(socket) = interface.outside.renewed(&mut generation) {
                answers = Some(socket.sink());
            }
            interface.on_time(&mut outbox, |outbox| {
                answers.iter_mut().for_each(|answers| _ = answers.send(outbox));
            });
            drop(interface);
            if Instant::now() >= print_at {
                print_at += self.figures;
                self.print();
            }
            wait::pause(TICK);
            if has_ended() || !control.is_none_or(ControlSocket::exists) {
                self.stop.store(true, Ordering::Relaxed);
            }
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
        let (entry, exit) = (lock(&self.outward.entry), self.inward.exit.lock());
        let (mut list, sink) = (WaitList::new(), exit.tun.sink());
        if out.is_blocked() {
            list.add(Some(&into.answers), Interest::Writable);
        } else {
            list.add(Some(&entry.tun), Interest::Readable);
        }
        if sink.is_blocked() {
            list.add(Some(sink), Interest::Writable);
        } else {
            list.add(Some(&into.udp), Interest::Readable);
        }
        list.wait(Some(TICK)).map(drop).context("cannot wait")
    }

    fn print(&self) {
        if self.is_verbose {
            // An error is ignored, because the reader of standard output may have ended.
            _ = writeln!(io::stdout(), "{}\n{}", self.outward, self.inward);
        }
    }
}
