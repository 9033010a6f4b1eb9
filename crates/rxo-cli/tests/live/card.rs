//! `rxo card` as the network card of another rxo process: `rxo sink` and `rxo source` with `virtio:PATH`,
//! which shares memory with it.

use rxo_testbed::Lab;
use serde_json::Value;

use crate::Test;
use crate::endpoint::{AT_HOST, connect, hash, json, pattern, read_all, send_all};
use crate::guests::{Socket, totals};
use crate::process::{Rxo, run, spawn};

pub(crate) const TESTS: &[Test] = &[
    ("a_host_behind_a_card_receives_what_linux_sends", receives),
    ("a_host_behind_a_card_sends_what_linux_receives", sends),
    ("a_card_expands_the_acks_of_its_host", expands),
    ("a_card_without_offloads_carries_the_same", without_offloads),
    ("a_card_waits_for_its_wire", unplugged),
    ("a_card_refuses_what_it_cannot_be", refused),
];

const BYTES: u32 = 20_000_000;

/// Returns the counter `name` in a card's totals; 0 if it is absent.
fn count(totals: &Value, way: &str, name: &str) -> u64 {
    totals[way].get(name).map_or(0, |count| count.as_u64().unwrap())
}

/// Ends the card with SIGINT, and returns its totals.
fn ended(card: Rxo) -> Value {
    card.signal("INT");
    let (code, mut lines, said) = card.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("a guest has started"), "{said}");
    let totals = lines.pop().unwrap();
    assert_eq!(totals["kind"], "totals");
    totals
}

/// Sends from Linux to `rxo sink` through a card with `flags`. Returns the totals of the card.
fn received(name: &str, flags: &str, of_sink: &str) -> Value {
    let (lab, socket) = (Lab::through().unwrap(), Socket::new(name));
    let (card, first) = Rxo::start_card(lab.host(), &format!("{} {flags}", socket.card()));
    assert!(first["card"].is_object(), "{first}");
    let line =
        format!("sink {} --listen 7000 --hash --json --interval 0s {of_sink}", socket.guest());
    let sink = spawn(lab.host(), &line);
    let stream = connect(lab.peer(), AT_HOST);
    let bytes = pattern(BYTES);
    send_all(&stream, &bytes);
    let (totals, crc) = totals(json(&sink.wait_with_output().unwrap()));
    assert_eq!((totals["bytes"].as_u64(), crc), (Some(BYTES.into()), hash(&bytes)));
    ended(card)
}

/// The wire's interface is deleted before the host connects; a new one with its name then carries the data.
fn unplugged() {
    let (lab, socket) = (Lab::through().unwrap(), Socket::new("card-unplugged"));
    let (card, _) = Rxo::start_card(lab.host(), &format!("{} --wait-for-nic", socket.card()));
    lab.peer().interface(Lab::PEER_INTERFACE).delete().unwrap();
    let line = format!("sink {} --listen 7000 --hash --json --interval 0s", socket.guest());
    let sink = spawn(lab.host(), &line);
    lab.connect_again(Lab::WIRE_INTERFACE).unwrap();
    let stream = connect(lab.peer(), AT_HOST);
    let bytes = pattern(1_000_000);
    send_all(&stream, &bytes);
    let (_, crc) = totals(json(&sink.wait_with_output().unwrap()));
    assert_eq!(crc, hash(&bytes));
    ended(card);
}

fn receives() {
    let totals = received("card-receives", "--moderate 50us", "");
    // Linux leaves checksums to the device.
    assert!(count(&totals, "wire", "completed") > 0, "{totals}");
    assert_eq!(count(&totals, "wire", "invalid"), 0, "{totals}");
    let frames = totals["host_out"]["deliveries"].as_u64().unwrap();
    assert!(frames > u64::from(BYTES) / 1_500, "{totals}");
    let notifications = totals["host_out"]["submissions"].as_u64().unwrap();
    assert!(0 < notifications && notifications < frames, "{totals}");
}

/// Sends from `rxo source` to Linux through a card with `flags`. Returns the totals of the card.
fn sent(name: &str, flags: &str) -> Value {
    let (lab, socket) = (Lab::through().unwrap(), Socket::new(name));
    let (card, _) = Rxo::start_card(lab.host(), &format!("{} {flags}", socket.card()));
    let server = crate::endpoint::serve(&lab, 1, |stream| hash(&read_all(&stream)));
    let guest = socket.guest();
    let line = format!("source {guest} 10.77.0.1:7000 --bytes 20M --hash --json --interval 0s");
    let (_, crc) = totals(json(&run(lab.host(), &line)));
    assert_eq!(server.join().unwrap(), [crc]);
    ended(card)
}

fn sends() {
    let totals = sent("card-sends", "");
    assert!(count(&totals, "wire_back", "segmented") > 0, "{totals}");
    assert!(count(&totals, "wire_back", "completed") > 0, "{totals}");
    let frames = totals["nic_out"]["deliveries"].as_u64().unwrap();
    assert!(frames > u64::from(BYTES) / 1_500, "{totals}");
}

/// The host acknowledges every second segment, and sends those ACKs as templates, so that its ring has fewer
/// packets than the wire.
fn expands() {
    let totals = received("card-expands", "--offload checksum,tso,expand", "--acks templates");
    assert!(count(&totals, "wire_back", "expanded") > 0, "{totals}");
    assert_eq!(count(&totals, "wire_back", "not_expanded"), 0, "{totals}");
}

/// If the card has no offloads, the host does the work itself.
fn without_offloads() {
    let totals = received("card-plain-receives", "--offload none", "");
    let checked = count(&totals, "wire", "valid") + count(&totals, "wire", "invalid");
    assert_eq!(checked, 0, "{totals}");
    let totals = sent("card-plain-sends", "--offload none");
    assert!(totals.get("wire_back").is_none(), "nothing is left to the card: {totals}");
}

fn refused() {
    let (lab, socket) = (Lab::through().unwrap(), Socket::new("card-refused"));
    let (card, _) = Rxo::start_card(lab.host(), &socket.card());
    let path = socket.path();
    let rows = [
        (format!("--wire tap:other --guest vhost:{path}"), "a process listens there; end it"),
        (format!("--wire packet:nowhere --guest vhost:{path}2"), "--wire"),
        (format!("--wire packet:wire0 --guest vhost:{path}2"), "packet:wire0"),
        (format!("--wire packet:wire0 --guest virtio:{path}"), "give vhost:PATH"),
    ];
    for (line, part) in rows {
        let output = run(lab.host(), &format!("card {line}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(part), "{line}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
    card.signal("INT");
    assert_eq!(card.end().0, Some(0));
}
