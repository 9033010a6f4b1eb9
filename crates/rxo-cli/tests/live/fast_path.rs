//! All fast path flags at once, on a file server with a Linux client.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;

use rxo_capture::{Capture, Record};
use rxo_testbed::{Lab, Namespace};
use serde_json::Value;

use crate::Test;
use crate::endpoint::{connect, pattern};
use crate::process::command;
use crate::report::Scratch;

pub(crate) const TESTS: &[Test] = &[
    ("a_server_filters_counts_taps_and_consumes_at_once", all_modules),
    ("flags_of_the_fast_path_without_effect_are_refused", without_effect),
];

const HOST: &str = "--nic packet:wire0 --ip 10.77.0.2/24";

fn all_modules() {
    let (scratch, lab) = (Scratch::new("fast-path"), Lab::through().unwrap());
    let (folder, tap) = (scratch.file("www"), scratch.file("all.pcapng"));
    fs::create_dir(&folder).unwrap();
    let file = pattern(3_000_000);
    fs::write(folder.join("file"), &file).unwrap();
    let mut line = command(&format!(
        "serve {} {HOST} --json --fast-path pure-ack,syn-flood,accounting --account-by flow --tap {}",
        folder.display(),
        tap.display()
    ));
    line.args(["--filter", "drop from 10.77.0.1 port 9999 to 10.77.0.2"]);
    let server = lab.host().run(|| line.spawn()).unwrap().unwrap();
    let stream = connect(lab.peer(), "10.77.0.2:80");
    let blocked = refused_datagrams(lab.peer());
    let answer = get(&stream);
    assert!(answer.ends_with(&file), "{} bytes", answer.len());
    let kill = format!("kill -INT {}", server.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let output = server.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8(output.stdout).unwrap();
    let totals: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let fast = &totals["fast_path"];
    let count =
        |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} in {fast}; {said}"));
    assert_eq!(fast["modules"], "pure-ack,syn-flood,accounting,filter");
    assert!(count(&fast["consumed"]) > 10, "{fast}");
    assert_eq!(fast["unseen"], fast["consumed"], "the filtered are none of them");
    assert_eq!(count(&fast["filtered"]), blocked, "{fast}");
    assert_eq!(count(&fast["syn_flood"]["syns"]), 1, "{fast}");
    let accounts = fast["accounts"].as_array().unwrap();
    let of_client = |account: &&Value| {
        let of = account["of"].as_str().unwrap();
        of.starts_with("10.77.0.1:") && of.ends_with(" to 10.77.0.2:80")
    };
    let account = accounts.iter().find(of_client).unwrap_or_else(|| panic!("{fast}"));
    assert!(count(&account["acks"]) >= count(&fast["consumed"]), "{fast}");
    let tapped = tapped_acks(&tap);
    assert!(tapped >= count(&fast["consumed"]), "{tapped} in the capture; {fast}");
}

fn get(mut stream: &TcpStream) -> Vec<u8> {
    stream.write_all(b"GET /file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// Sends datagrams that the rule drops. Returns the number of datagrams sent.
fn refused_datagrams(peer: &Namespace) -> u64 {
    let socket = peer.run(|| UdpSocket::bind("10.77.0.1:9999").unwrap()).unwrap();
    (0..5).map(|_| u64::from(socket.send_to(b"dropped", "10.77.0.2:7").is_ok())).sum()
}

/// Returns the number of pure ACKs from the client in the capture.
fn tapped_acks(path: &Path) -> u64 {
    let mut capture = Capture::open(path).unwrap();
    let mut records: Vec<Record> = Vec::new();
    while capture.read_batch(&mut records, 1_000).unwrap() > 0 {}
    let is_ack = |record: &&Record| {
        let Some((_ethernet, packet)) = record.bytes.as_ref().split_at_checked(14) else {
            return false;
        };
        let Some(headers) = packet.first_chunk::<40>() else { return false };
        let is_to_server = headers[0] == 0x45 && headers[9] == 6 && headers[22..24] == [0, 80];
        let end = 20 + usize::from(headers[32] >> 4) * 4;
        let has_no_text = usize::from(u16::from_be_bytes([headers[2], headers[3]])) == end;
        is_to_server && headers[33] == 0x10 && has_no_text
    };
    records.iter().filter(is_ack).count() as u64
}

fn without_effect() {
    for (flags, remedy) in [
        ("--fast-path pure-ack,filter", "add one, such as --filter"),
        ("--account-by flow", "add --fast-path accounting"),
    ] {
        let output = command(&format!("sink {HOST} --listen 7000 {flags}")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(remedy), "{said}");
    }
}
