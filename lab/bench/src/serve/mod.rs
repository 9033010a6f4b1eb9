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
use rxo_peers::GuestImage;
use serde::Serialize;

use self::client::Asked;
use self::servers::{Folder, Running};
use crate::live_tcp::{Net, Place, Stack};
use crate::stats::Summary;
use crate::subject::Subject;

/// Options of `rxo-lab bench serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    #[command(flatten)]
    subject: Subject,
    /// Rounds over both servers, 1 or more.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Connections of the client.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Seconds that a server is asked in each round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Asks from a Linux guest on the same machine instead, so that both servers copy each byte once.
    #[arg(long, conflicts_with_all = ["connections", "seconds"])]
    guest: bool,
    /// Prints a JSON document.
    #[arg(long)]
    json: bool,
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
    requests_per_processor_second: Spread,
    /// Requests per second of processor time of server, client and softirq threads, for a machine that also
    /// runs other programs.
    requests_per_own_second: Spread,
    requests_per_second: Spread,
}

/// A median with its quartiles.
#[derive(Debug, Serialize)]
struct Spread {
    median: f64,
    low: f64,
    high: f64,
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
    let folder = Folder::new()?;
    if let Some(image) = image {
        return guest::run(args, &image, &rxo, &folder);
    }
    let place = |stack| Place::new(stack, &WIRE, &rxo);
    let nginx = Running::nginx(place(Stack::Linux).context("nginx's place")?, &folder)?;
    let rxo = Running::rxo(place(Stack::Rxo).context("rxo's place")?, &folder)?;
    let mut servers = [nginx, rxo];
    for server in &mut servers {
        server.check(&folder).with_context(|| server.name.to_owned())?;
    }
    let mut rows = Vec::new();
    for bytes in SIZES {
        eprintln!("serve: {bytes} bytes");
        rows.push(row(&mut servers, bytes, args)?);
    }
    if args.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        show(&rows, args);
    }
    Ok(())
}

fn row(servers: &mut [Running; 2], bytes: usize, args: &ServeArgs) -> Result<Row> {
    let mut asked = [Vec::new(), Vec::new()];
    for _ in 0..args.rounds {
        for (server, asked) in servers.iter_mut().zip(&mut asked) {
            let once = server.ask(bytes, args.connections, args.seconds);
            asked.push(once.with_context(|| server.name.to_owned())?);
        }
    }
    let [nginx, rxo] = asked.map(|asked| figures(&asked));
    let ratio = |of: fn(&Figures) -> &Spread| of(&rxo).median / of(&nginx).median;
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
    let spread = |of: fn(&Asked) -> Duration| {
        let rates = asked.iter().map(|asked| asked.requests as f64 / of(asked).as_secs_f64());
        let Summary { median, low, high } = Summary::of(&rates.collect::<Vec<_>>());
        Spread { median, low, high }
    };
    Figures {
        requests_per_processor_second: spread(|asked| asked.processor),
        requests_per_own_second: spread(|asked| asked.own),
        requests_per_second: spread(|asked| asked.time),
    }
}

fn show(rows: &[Row], args: &ServeArgs) {
    println!(
        "{:>8} {:>26} {:>26} {:>6} {:>6} {:>12} {:>12} {:>6}",
        "bytes",
        "nginx, requests/cpu s",
        "rxo, requests/cpu s",
        "ratio",
        "own",
        "nginx, MB/s",
        "rxo, MB/s",
        "ratio"
    );
    for row in rows {
        let processor = |of: &Figures| {
            let Spread { median, low, high } = &of.requests_per_processor_second;
            format!("{median:.0} ({low:.0}-{high:.0})")
        };
        let rate = |of: &Figures| of.requests_per_second.median * row.bytes as f64 / 1e6;
        println!(
            "{:>8} {:>26} {:>26} {:>6.2} {:>6.2} {:>12.0} {:>12.0} {:>6.2}",
            row.bytes,
            processor(&row.nginx),
            processor(&row.rxo),
            row.processor_ratio,
            row.own_ratio,
            rate(&row.nginx),
            rate(&row.rxo),
            row.rate_ratio,
        );
    }
    let ServeArgs { rounds, connections, seconds, .. } = args;
    println!(
        "Medians of {rounds} rounds of {seconds} s over {connections} connections, quartiles in brackets. \
         Processor: of the whole machine, client included; \"own\": only server, client and softirq threads."
    );
}
