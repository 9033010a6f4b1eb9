//! Formats the result for a live interface as text: the frames that were received, the host's current settings,
//! and the effect of coalescing at three rates.

use rxo_console::numbers::{grouped, ratio};
use rxo_console::table::Table;

use super::decision::three_digits;
use super::units::time;
use crate::report::{HostSettings, Live, LiveRate, LiveReceiver};
use crate::words::plural;

pub(super) fn text(live: &Live) -> String {
    let head = ["receiver", "rate", "packets/s", "Gbit/s", "cores without", "today", "with it", ""];
    let mut table = Table::new(&head);
    for receiver in &live.receivers {
        receiver.rates.iter().for_each(|rate| table.row(row(receiver, rate)));
    }
    format!(
        "Live on {}, compared with the host as it is, in steps of {}\n\n{}",
        live.interface,
        time(live.step_ns),
        table.render()
    )
}

/// Formats the measured effect of the host's current settings.
pub(crate) fn today(live: &Live) -> String {
    let packets = live.receivers.first().map_or(0, |all| all.packets);
    format!(
        "{:.2} packets a delivery on {}, measured: {}",
        ratio(packets as f64, live.frames as f64),
        live.interface,
        settings(&live.settings)
    )
}

/// Formats the number of frames that were received, and the number of frames that were lost.
pub(crate) fn watched(live: &Live) -> String {
    let lost = match live.lost_packets {
        0 => "none lost".to_owned(),
        lost => format!("{} LOST by the socket", grouped(lost)),
    };
    format!(
        "{} for {}: {}, {} of them merged from {}; {lost}",
        live.interface,
        time(live.watched_ns),
        plural(live.frames, "frame"),
        grouped(live.merged_frames),
        plural(live.merged_packets, "packet")
    )
}

fn settings(settings: &HostSettings) -> String {
    let HostSettings { driver, gro, lro, is_adaptive, .. } = settings;
    let state = |is_on: bool| if is_on { "on" } else { "off" };
    let number = |value: Option<u64>| value.map_or("unknown".to_owned(), |value| value.to_string());
    let usecs = match (settings.rx_usecs, is_adaptive) {
        (Some(_), true) => "adaptive".to_owned(),
        (usecs, _) => number(usecs.map(u64::from)),
    };
    format!(
        "driver {}, GRO {}, LRO {}, rx-usecs {usecs}, rx-frames {}, gro_flush_timeout {}, napi_defer_hard_irqs {}",
        driver.as_deref().unwrap_or("unknown"),
        gro.map_or("unknown", state),
        state(*lro),
        number(settings.rx_frames.map(u64::from)),
        number(settings.gro_flush_timeout_ns),
        number(settings.napi_defer_hard_irqs)
    )
}

fn row(receiver: &LiveReceiver, rate: &LiveRate) -> [String; 8] {
    [
        receiver.address.clone().unwrap_or_else(|| "all".to_owned()),
        rate.rate.clone(),
        grouped(rate.packets_per_second as u64),
        format!("{:.3}", rate.gbit_per_second),
        three_digits(rate.cores_without),
        three_digits(rate.cores_today),
        three_digits(rate.cores_with),
        if rate.is_worth_it { "worth it" } else { "not worth it" }.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_unknown_are_called_so() {
        let known = HostSettings {
            driver: Some("virtio_net".into()),
            gro: Some(true),
            rx_usecs: Some(8),
            gro_flush_timeout_ns: Some(0),
            ..HostSettings::default()
        };
        assert_eq!(
            settings(&known),
            "driver virtio_net, GRO on, LRO off, rx-usecs 8, rx-frames unknown, gro_flush_timeout 0, \
             napi_defer_hard_irqs unknown"
        );
        let adaptive = HostSettings { is_adaptive: true, ..known };
        assert!(settings(&adaptive).contains("rx-usecs adaptive"));
    }

    #[test]
    fn every_receiver_has_a_row_for_every_rate() {
        let rate = |name: &str| LiveRate { rate: name.into(), ..LiveRate::default() };
        let one = |address: Option<&str>| LiveReceiver {
            address: address.map(str::to_owned),
            packets: 100,
            rates: vec![rate("median"), rate("peak")],
            ..LiveReceiver::default()
        };
        let live = Live {
            interface: "eth0".into(),
            frames: 40,
            lost_packets: 7,
            receivers: vec![one(None), one(Some("10.0.0.2"))],
            ..Live::default()
        };
        let lines = text(&live);
        assert_eq!(lines.lines().filter(|line| line.ends_with("not worth it")).count(), 4);
        assert!(today(&live).starts_with("2.50 packets a delivery on eth0, measured"));
        assert!(watched(&live).ends_with("7 LOST by the socket"));
    }
}
