//! Formats connections as `ss -ti` does: for each a line with state and addresses, and an indented line with
//! all other values.

use serde_json::Value;

use crate::numbers::ratio;

/// Formats one page of connections. If this is the first page, a header line precedes the connections.
pub(super) fn text(answer: &Value, is_first: bool) -> String {
    let rows = answer["connections"].as_array().map(Vec::as_slice).unwrap_or_default();
    let head = is_first.then(|| line("State", "Recv-Q", "Send-Q", "Local", "Peer"));
    let rows = rows.iter().flat_map(|row| [first(row), format!("     {}", rest(row))]);
    head.into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

fn line(state: &str, received: &str, sent: &str, local: &str, peer: &str) -> String {
    format!("{state:<10} {received:>10} {sent:>10}  {local:<28}  {peer}")
}

fn first(row: &Value) -> String {
    let text = |field: &str| row[field].as_str().unwrap_or("-").to_owned();
    let number = |field: &str| row[field].as_u64().unwrap_or(0).to_string();
    line(&text("state"), &number("recv_q"), &number("send_q"), &text("local"), &text("peer"))
}

/// Formats the second line of a connection, with the abbreviations of `ss`. Like `ss`, leaves out values that
/// are zero or unknown.
fn rest(row: &Value) -> String {
    let mut words = Words { row, parts: Vec::new() };
    for field in ["congestion", "options"] {
        words.plain(field);
    }
    words.pair("wscale", |row| {
        Some(format!("{},{}", row["wscale"][0].as_u64()?, row["wscale"][1].as_u64()?))
    });
    words.pair("rto", |row| millis(&row["rto_us"]));
    words.pair("backoff", |row| above_zero(&row["backoff"]));
    words.pair("rtt", |row| {
        Some(format!("{}/{}", millis(&row["rtt_us"])?, millis(&row["rttvar_us"])?))
    });
    words.pair("minrtt", |row| millis(&row["min_rtt_us"]));
    words.pair("mss", |row| above_zero(&row["mss"]));
    words.pair("rcvmss", |row| above_zero(&row["received_mss"]));
    words.pair("advmss", |row| above_zero(&row["advertised_mss"]));
    words.pair("cwnd", |row| segments(row, "cwnd"));
    words.pair("ssthresh", |row| segments(row, "ssthresh"));
    let counts = [
        ("bytes_acked", "bytes_acked"),
        ("bytes_received", "bytes_received"),
        ("unacked", "in_flight"),
        ("unsent", "unsent"),
        ("sacked", "sacked"),
        ("lost", "lost"),
        ("dsack_dups", "duplicates_reported"),
        ("reord_seen", "reordered"),
    ];
    for (word, field) in counts {
        words.pair(word, |row| above_zero(&row[field]));
    }
    words.pair("retrans", |row| {
        let total = row["segments_retransmitted"].as_u64().filter(|total| *total > 0)?;
        let mss = row["mss"].as_u64().unwrap_or(1).max(1);
        Some(format!("{}/{total}", row["retransmitted"].as_u64()?.div_ceil(mss)))
    });
    words.pair("recovery", |row| {
        row["recovery"].as_str().filter(|it| *it != "open").map(Into::into)
    });
    let rates = [("send", send(row)), ("pacing_rate", bits(row, "pacing_rate"))];
    let rates = rates.into_iter().chain([("delivery_rate", bits(row, "delivery_rate"))]);
    for (word, rate) in rates {
        words.parts.extend(rate.map(|rate| format!("{word} {rate}")));
    }
    words.pair("snd_wnd", |row| above_zero(&row["snd_wnd"]));
    words.pair("rcv_wnd", |row| above_zero(&row["rcv_wnd"]));
    words.pair("sndbuf", |row| above_zero(&row["send_buffer"]));
    words.pair("rcvbuf", |row| above_zero(&row["receive_buffer"]));
    if row["orphan"] == true {
        words.parts.push("orphan".to_owned());
    }
    words.parts.join(" ")
}

struct Words<'a> {
    row: &'a Value,
    parts: Vec<String>,
}

impl Words<'_> {
    fn plain(&mut self, field: &str) {
        match &self.row[field] {
            Value::String(text) => self.parts.push(text.clone()),
            Value::Array(texts) => {
                self.parts.extend(texts.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            _ => {}
        }
    }

    fn pair(&mut self, word: &str, value: impl Fn(&Value) -> Option<String>) {
        self.parts.extend(value(self.row).map(|value| format!("{word}:{value}")));
    }
}

fn above_zero(value: &Value) -> Option<String> {
    value.as_u64().filter(|number| *number > 0).map(|number| number.to_string())
}

/// Formats a number of microseconds as milliseconds; `None` if the value is no number.
fn millis(value: &Value) -> Option<String> {
    value.as_f64().map(|us| ((us).round() / 1e3).to_string())
}

/// Formats the congestion window or threshold in `field` as a number of segments, as Linux counts the window;
/// `None` if the field is missing.
fn segments(row: &Value, field: &str) -> Option<String> {
    let (bytes, mss) = (row[field].as_u64()?, row["mss"].as_u64().filter(|mss| *mss > 0)?);
    Some((bytes / mss).to_string())
}

/// Formats the rate that the congestion window allows, one window per round trip, in bits per second; `None`
/// if the window or the round-trip time is unknown.
fn send(row: &Value) -> Option<String> {
    let (cwnd, rtt_us) = (row["cwnd"].as_f64()?, row["rtt_us"].as_f64()?);
    Some(bits_a_second(ratio(cwnd * 8e6, rtt_us)))
}

fn bits(row: &Value, field: &str) -> Option<String> {
    row[field].as_f64().map(|bytes| bits_a_second(bytes * 8.0))
}

fn bits_a_second(bits: f64) -> String {
    match bits {
        bits if bits >= 1e9 => format!("{:.2}Gbps", bits / 1e9),
        bits if bits >= 1e6 => format!("{:.2}Mbps", bits / 1e6),
        bits => format!("{bits:.0}bps"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_connection_reads_as_ss_shows_it() {
        let row = json!({
            "state": "ESTAB", "local": "10.0.0.2:80", "peer": "10.0.0.1:5000", "orphan": false,
            "recv_q": 0, "send_q": 28_960, "congestion": "cubic", "wscale": [7, 8],
            "options": ["ts", "sack"], "rtt_us": 1_234.6, "rttvar_us": 300.0, "min_rtt_us": 900.0,
            "rto_us": 204_000.0, "backoff": 0, "mss": 1448, "received_mss": 536,
            "advertised_mss": 1460, "cwnd": 14_480, "ssthresh": 10_136, "recovery": "recovery",
            "in_flight": 28_960, "unsent": 0, "sacked": 1448, "lost": 0, "retransmitted": 2_896,
            "segments_retransmitted": 3, "bytes_acked": 1_000_000,
            "bytes_received": 120, "pacing_rate": 12_500_000, "snd_wnd": 65_535, "rcv_wnd": 65_536,
            "send_buffer": 87_380, "receive_buffer": 131_072,
        });
        let text = text(&json!({ "connections": [row] }), true);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "State          Recv-Q     Send-Q  Local                         Peer",
                "ESTAB               0      28960  10.0.0.2:80                   10.0.0.1:5000",
            ]
        );
        assert_eq!(
            lines[2].trim(),
            "cubic ts sack wscale:7,8 rto:204 rtt:1.235/0.3 minrtt:0.9 mss:1448 rcvmss:536 \
             advmss:1460 cwnd:10 ssthresh:7 bytes_acked:1000000 \
             bytes_received:120 unacked:28960 sacked:1448 retrans:2/3 recovery:recovery \
             send 93.83Mbps pacing_rate 100.00Mbps snd_wnd:65535 rcv_wnd:65536 sndbuf:87380 \
             rcvbuf:131072"
        );
    }

    #[test]
    fn without_connections_there_is_only_the_head() {
        assert_eq!(text(&json!({ "connections": [] }), true).lines().count(), 1);
        assert_eq!(text(&json!({ "connections": [] }), false), "");
    }
}
