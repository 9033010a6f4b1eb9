//! Tests of `rxo coalesce`, `rxo expand` and `rxo verify`.
#![allow(clippy::unwrap_used, reason = "the helpers of tests, too")]

mod files;
mod memory;
mod pipelines;
mod world;

use std::fs::File;
use std::io::Read;

use flate2::read::GzDecoder;
use rxo_coalesce::Policy;
use rxo_testkit::udp;
use serde_json::Value;

use self::world::{Folder, mixed, pcap, records, several_interfaces, shared_captures};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Coalesces, expands and verifies `name`; every result must equal its original. Returns the report. A
/// truncated capture is permitted, and its result is partial.
fn round(folder: &Folder, name: &str, policy: &str) -> Value {
    let original = folder.read(name);
    let is_pcap = original.starts_with(&[0xd4, 0xc3, 0xb2, 0xa1]);
    let whole = folder.command(&format!("coalesce {name} co.pcapng --policy {policy} --json"));
    let output = { whole }.output().unwrap();
    let code = output.status.code().unwrap();
    assert!(code == 0 || code == 3, "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let figures = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(figures["partial"].is_null(), code == 0);
    let back = if is_pcap { "back.pcap" } else { "back.pcapng" };
    folder.rxo(&format!("expand co.pcapng {back}"), 0);
    if is_pcap {
        assert!(folder.read(back) == original, "{name} does not come back byte for byte");
    }
    let (before, interfaces) = records(&folder.0.join(name));
    let (after, same_interfaces) = records(&folder.0.join(back));
    assert_eq!((before.len(), interfaces), (after.len(), same_interfaces));
    for (number, (a, b)) in before.iter().zip(&after).enumerate() {
        let same = a.bytes.as_ref() == b.bytes.as_ref() && a.at == b.at;
        let same = same && (a.interface, a.original_bytes) == (b.interface, b.original_bytes);
        assert!(same && a.options.iter().eq(b.options.iter()), "record {number} of {name}");
    }
    for other in ["co.pcapng", back] {
        let (text, _) = folder.rxo(&format!("verify {name} {other} --json"), code);
        assert_eq!(json(&text)["equal"], true, "{name} {other}: {text}");
    }
    figures
}

#[test]
fn real_captures_come_back_whatever_the_policy() {
    let folder = Folder::new("shared");
    for packed in shared_captures() {
        let name = packed.file_stem().unwrap().to_str().unwrap();
        let mut bytes = Vec::new();
        GzDecoder::new(File::open(&packed).unwrap()).read_to_end(&mut bytes).unwrap();
        folder.write(name, &bytes);
        // All policies for small captures, two for large ones to save time.
        let some = ["remember", "linux-gro"];
        let is_small = bytes.len() < 4 << 20;
        let policies = Policy::all().into_iter().map(|policy| policy.name);
        for policy in policies.filter(|name| is_small || some.contains(name)) {
            let figures = round(&folder, name, policy);
            // The capture has requests, responses and fragments, in which other policies end aggregates with
            // PSH.
            let is_odd = name.starts_with("echo") || name.starts_with("ip_fragments");
            if is_odd && some.contains(&policy) {
                assert_eq!(figures["aggregates"], 0, "{name} {policy}");
            }
            if name.starts_with("smb2") && policy == "remember" {
                // The capture has 2,187 data segments.
                assert!(figures["aggregated_packets"].as_u64().unwrap() >= 2_187 * 9 / 10);
            }
        }
    }
}

#[test]
fn made_captures_come_back_whatever_the_policy() {
    let folder = Folder::new("made");
    folder.write("mixed.pcap", &pcap(&mixed(5, 60)));
    folder.write("several.pcapng", &several_interfaces());
    folder.write("none.pcap", &pcap(&[]));
    for policy in Policy::all() {
        for name in ["mixed.pcap", "several.pcapng", "none.pcap"] {
            let figures = round(&folder, name, policy.name);
            let merges = policy.coalesce && name != "none.pcap";
            assert_eq!(figures["aggregates"].as_u64().unwrap() > 0, merges, "{name}");
        }
    }
}

#[test]
fn what_was_done_is_said() {
    let folder = Folder::new("said");
    folder.write("in.pcap", &pcap(&mixed(3, 60)));
    let (text, _) = folder.rxo("coalesce in.pcap out.pcapng --policy remember --set flows=8", 0);
    assert!(text.contains(" packets became ") && text.contains("remember"), "{text}");
    let (text, _) = folder.rxo("expand out.pcapng back.pcap", 0);
    assert!(text.contains("given back"), "{text}");
    let (text, _) = folder.rxo("verify in.pcap out.pcapng", 0);
    assert!(text.contains("say the same"), "{text}");
}

#[test]
fn a_flipped_byte_is_named() {
    let folder = Folder::new("flipped");
    let mut file = pcap(&mixed(1, 60));
    folder.write("in.pcap", &file);
    folder.rxo("coalesce in.pcap out.pcapng --policy remember", 0);
    // The last byte of the first packet: the 1,400th of the stream.
    let first = 24 + 16 + 14 + 20 + 32 + 1_400;
    file[first - 1] ^= 1;
    folder.write("changed.pcap", &file);
    for other in ["in.pcap", "out.pcapng"] {
        let (text, said) = folder.rxo(&format!("verify changed.pcap {other} --json"), 1);
        let found = json(&text);
        assert_eq!(found["equal"], false);
        let difference = &found["differences"][0];
        assert_eq!(difference["kind"], "payload");
        assert_eq!(
            (&difference["stream_offset"], &difference["packet_a"]),
            (&1_399.into(), &1.into())
        );
        assert!(said.contains("changed.pcap") && said.contains("differ"), "{said}");
    }
    let (text, _) = folder.rxo("verify changed.pcap in.pcap", 1);
    assert!(text.contains("payload at byte 1,399 of the stream: a packet 1: byte 0x"), "{text}");
}

#[test]
fn datagrams_of_unknown_length_are_neither_equal_nor_different() {
    let folder = Folder::new("undecided");
    folder.write("a.pcap", &pcap(&[udp().seq(0).len(1_300)]));
    folder.write("b.pcap", &pcap(&[udp().seq(0).len(600), udp().seq(600).len(700)]));
    let (text, said) = folder.rxo("verify a.pcap b.pcap", 3);
    assert!(text.contains("lengths of datagrams") && text.contains("same bytes"), "{text}");
    for part in ["packet 1 of a.pcap and packet 2 of b.pcap", "neither has a note", "rxo coalesce"]
    {
        assert!(said.contains(part), "'{part}' is not in: {said}");
    }
    let (text, _) = folder.rxo("verify a.pcap b.pcap --json", 3);
    let found = json(&text);
    assert_eq!(
        (&found["equal"], &found["undecided"][0]["kind"]),
        (&false.into(), &"datagrams".into())
    );
}

#[test]
fn what_cannot_be_is_one_line() {
    let folder = Folder::new("lines");
    folder.write("in.pcap", &pcap(&mixed(1, 5)));
    folder.write("text.txt", b"hello, this is no capture");
    folder.rxo("coalesce in.pcap co.pcapng --policy remember", 0);
    folder.write("several.pcapng", &several_interfaces());
    folder.rxo("coalesce several.pcapng cos.pcapng", 0);
    folder.write("two.gz", &[0x1f, 0x8b]);
    folder.write("three.zst", &[0x28, 0xb5, 0x2f]);
    let rows: [(&str, i32, &[&str]); 16] = [
        ("coalesce in.pcap", 2, &["OUT"]),
        ("coalesce in.pcap in.pcap", 2, &["in.pcap is the same file as in.pcap"]),
        ("coalesce in.pcap ./in.pcap", 2, &["same file"]),
        ("coalesce two.gz x", 1, &["two.gz ends too early", "the gzip stream is cut off"]),
        ("coalesce three.zst x", 1, &["three.zst ends too early", "the zstd stream is cut off"]),
        ("coalesce in.pcap no/where.pcapng", 1, &["no/where.pcapng cannot be written"]),
        ("coalesce nothing.pcap x", 1, &["nothing.pcap cannot be opened"]),
        ("coalesce text.txt x", 1, &["text.txt is no capture", "pcapng"]),
        ("coalesce in.pcap x --policy lro", 2, &["--policy lro", "linux-gro"]),
        ("coalesce in.pcap x --poll never", 2, &["--poll never", "packets:N"]),
        ("coalesce in.pcap x --checksum no", 2, &["--checksum no", "verify, partial or trust"]),
        ("coalesce co.pcapng x", 1, &["co.pcapng", "already", "rxo expand"]),
        ("expand in.pcap x", 1, &["in.pcap", "not written by `rxo coalesce`"]),
        ("expand cos.pcapng x.pcap", 1, &["x.pcap", "several interfaces", ".pcapng"]),
        ("verify in.pcap nothing.pcap", 1, &["nothing.pcap cannot be opened"]),
        ("verify in.pcap in.pcap --window 0", 2, &["--window 0", "megabytes"]),
    ];
    for (line, code, parts) in rows {
        let (_, said) = folder.rxo(line, code);
        for part in parts {
            assert!(said.contains(part), "{line}: '{part}' is not in: {said}");
        }
    }
    let names = "co.pcapng cos.pcapng in.pcap several.pcapng text.txt three.zst two.gz";
    assert_eq!(folder.names().join(" "), names, "nothing is left of what failed");
    assert_eq!(folder.read("in.pcap"), pcap(&mixed(1, 5)));
}
