//! `rxo-lab bench serve`: compares `rxo serve` with nginx on Linux's own stack, in the same network.
//!
//! Both serve the same directory over a wire to a Linux peer, where `wrk` requests one file repeatedly over
//! persistent connections. Both places run at the same time and take turns. The measure is requests per
//! second of the whole machine's processor time, client included, because a veth charges the thread that runs
//! its softirq. Before the measurement every file is fetched once and compared.

mod client;
mod guest;
mod servers;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use rxo_demo::stats::Quartiles;
use rxo_peers::GuestImage;
use serde::Serialize;

use self::client::Asked;
use self::servers::{Running, Site};
use crate::live_tcp::{Net, Place, Stack};
use crate::rounds::{Rounds, Rows, Run};
use crate::subject::Subject;

/// Options of `rxo-lab bench serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    rounds: Rounds,
    /// Connections of the client.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Seconds that a server is asked in each round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Asks from a Linux guest on the same machine instead, so that both servers copy each byte once.
    #[arg(long, conflicts_with_all = ["connections", "seconds"])]
    guest: bool,
}

/// File sizes, in bytes.
const SIZES: [usize; 4] = [4 << 10, 64 << 10, 1 << 20, 8 << 20];

/// The wire for both servers. Without TSO, the sender's stack segments.
const WIRE: Net = Net { mtu: 1_500, tso: false, delay_ms: 0, loss_percent: 0 };

/// Results for one file with both servers.
#[derive(Debug, Serialize)]
struct Row {
    bytes: usize,
    nginx: Figures,
    rxo: Figures,
    /// Ratio of rxo's to nginx's requests per second of the whole machine's processor time.
    processor_ratio: f64,
    /// Ratio of the requests per second of processor time of server, client and softirq threads.
    own_ratio: f64,
    /// Ratio of the requests per second of real time.
    rate_ratio: f64,
}

#[derive(Debug, Serialize)]
struct Figures {
    requests_per_processor_second: Quartiles,
    /// Requests per second of processor time of server, client and softirq threads, for a machine that also
    /// runs other programs.
    requests_per_own_second: Quartiles,
    requests_per_second: Quartiles,
}

/// Measures both servers, and prints the report.
///
/// # Errors
/// If namespaces cannot be made, a server fails, or a byte is wrong.
pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    // Must run before the process enters the user namespace, whose root cannot download a kernel.
    let image = args.guest.then(GuestImage::find).transpose()?;
    rxo_testbed::become_root_in_user_namespace()?;
    let rxo = args.subject.path()?;
    let site = Site::new()?;
    if let Some(image) = image {
        return guest::run(args, &image, &rxo, &site);
    }
    let place = |stack| Place::new(stack, &WIRE, &rxo);
    let nginx = Running::nginx(place(Stack::Linux).context("nginx's place")?, &site)?;
    let rxo = Running::rxo(place(Stack::Rxo).context("rxo's place")?, &site)?;
    let mut servers = [nginx, rxo];
    for server in &mut servers {
        server.check(&site).with_context(|| server.name.to_owned())?;
    }
    let (run, mut rows) = (args.rounds.begin(ROUNDS), Vec::new());
    for bytes in SIZES {
        eprintln!("serve: {bytes} bytes");
        rows.push(row(&mut servers, bytes, args, &run)?);
    }
    run.print(&Rows { rows })
}

fn row(servers: &mut [Running; 2], bytes: usize, args: &ServeArgs, run: &Run) -> Result<Row> {
    let asked = run.measure(
        servers,
        |server| server.name.to_owned(),
        |server| server.ask(bytes, args.connections, args.seconds),
    )?;
    let [nginx, rxo] = [0, 1].map(|server| figures(&asked[server]));
    let ratio = |of: fn(&Figures) -> &Quartiles| of(&rxo).median / of(&nginx).median;
    Ok(Row {
        bytes,
        processor_ratio: ratio(|figures| &figures.requests_per_processor_second),
        own_ratio: ratio(|figures| &figures.requests_per_own_second),
        rate_ratio: ratio(|figures| &figures.requests_per_second),
        nginx,
        rxo,
    })
}

fn figures(asked: &[Asked]) -> Figures {
    let rates = |of: fn(&Asked) -> Duration| {
        Quartiles::over(asked, |asked| asked.requests as f64 / of(asked).as_secs_f64())
    };
    Figures {
        requests_per_processor_second: rates(|asked| asked.processor),
        requests_per_own_second: rates(|asked| asked.own),
        requests_per_second: rates(|asked| asked.time),
    }
}

const ROUNDS: u32 = 5;
