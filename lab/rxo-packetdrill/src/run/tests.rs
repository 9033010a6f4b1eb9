//! Tests of reports about wrong scripts, and of the runner's robustness.

use proptest::prelude::*;

use super::{run, run_foreign};

fn failure(script: &str) -> String {
    run("test.pkt", script).expect_err("the script is wrong").to_string()
}

/// Beginning of a script with a listener, and an open connection as descriptor 4.
const OPEN: &str = "
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 32792 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.1 < . 1:1(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
";

#[test]
fn a_failure_says_where_what_and_what_instead() {
    assert_eq!(
        failure("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+.5 close(3) = -1 EBADF"),
        "test.pkt:2 at 0.500000 s\n  script    +.5 close(3) = -1 EBADF\n  \
         expected  close = -1 EBADF\n  got       0"
    );
}

#[test]
fn a_wrong_segment_is_shown_beside_the_right_one() {
    let said = failure(&format!("{OPEN}+0 write(4, ..., 10) = 10\n+0 > P. 1:12(11) ack 1"));
    assert!(said.contains("P. 1:11(10) ack 1 win 65535, then nothing leaves until"), "{said}");
    let said = failure(&format!("{OPEN}+0 write(4, ..., 10) = 10\n+0 > F. 1:11(10) ack 1"));
    assert!(said.contains("expected  F. 1:11(10) ack 1\n  got       P. 1:11(10) ack 1"), "{said}");
}

#[test]
fn a_wrong_time_is_told() {
    let said = failure(&format!("{OPEN}+0 close(4) = 0\n+.25 > F. 1:1(0) ack 1"));
    assert!(said.contains("expected  leaves at 0.350000 s"), "{said}");
    assert!(said.contains("got       leaves at 0.100000 s"), "{said}");
    let said = failure(&format!("{OPEN}+0...0.3 read(4, ..., 9) = 1\n+.1 < P. 1:2(1) ack 1 win 9"));
    assert!(said.contains("expected  returns at 0.400000 s"), "{said}");
}

#[test]
fn what_is_left_over_is_a_failure() {
    let said = failure(&format!("{OPEN}+0 write(4, ..., 10) = 10"));
    assert!(said.starts_with("test.pkt:0 at"), "{said}");
    assert!(said.contains("P. 1:11(10) ack 1 win 65535 at 0.100000 s"), "{said}");
    let said = failure(&format!("{OPEN}+0...0.3 read(4, ..., 9) = 1"));
    assert!(said.contains("still blocks at the script's end"), "{said}");
    let said = failure(&format!("{OPEN}+0 read(4, ..., 9) = 1"));
    assert!(said.contains("read blocks"), "{said}");
}

/// packetdrill ignores packets that leave after a script's end.
#[test]
fn what_leaves_after_a_foreign_script_is_not_looked_at() {
    let script = format!("{OPEN}+0 write(4, ..., 10) = 10");
    assert!(run("own", &script).is_err());
    run_foreign("foreign", &script).unwrap();
    let blocks = format!("{OPEN}+0...0.3 read(4, ..., 9) = 1");
    assert!(run_foreign("foreign", &blocks).is_err());
}

/// Numbers of the script's side count from its SYN.
#[test]
fn numbers_of_the_scripts_side_are_used_as_they_are() {
    let script = "
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 4294967290:4294967290(0) win 32792 <mss 1000,sackOK,nop,nop>
+0 > S. 0:0(0) ack 4294967291 <mss 1460,nop,nop,sackOK>
+.1 < . 4294967291:4294967291(0) ack 1 win 32792
+0 accept(3, ..., ...) = 4
+0 < P. 14:24(10) ack 1 win 32792
+0 > . 1:1(0) ack 4294967291 <nop,nop,sack 14:24>
+0 < P. 4294967291:14(19) ack 1 win 32792
+0 > . 1:1(0) ack 24
+0 read(4, ..., 100) = 29
";
    run("numbers", script).unwrap();
}

#[test]
fn options_of_a_listener_count_for_what_it_accepts_from_then_on() {
    let script = "
 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 setsockopt(3, SOL_TCP, TCP_MAXSEG, [700], 4) = 0
+0 < S 0:0(0) win 32792 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 700>
";
    run("options", script).unwrap();
}

/// Another connection with other settings needs another host, which is impossible while the first is in use.
#[test]
fn a_connection_keeps_the_settings_that_it_began_with() {
    let said = failure(&format!(
        "{OPEN}+0 `sysctl net.ipv4.tcp_sack=0`\n+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5\n\
         +0 fcntl(5, F_SETFL, O_NONBLOCK) = 0\n+0 connect(5, ..., ...) = -1 EINPROGRESS"
    ));
    assert!(said.contains("got       -1 EOPNOTSUPP"), "{said}");
}

#[test]
fn what_cannot_be_run_here_is_refused() {
    assert!(failure("0 `true`").contains("there is no system here for other commands"));
    assert!(failure("--so_flags=\"nope\"\n0 close(3) = 0").contains("flag \"nope\" is invalid"));
    assert!(failure("--speed=10\n0 close(3) = 0").contains("--speed is not known here"));
}

fn time() -> impl Strategy<Value = String> {
    prop_oneof![Just("+0".to_owned()), Just("+.25".to_owned()), Just("+70".to_owned())]
}

fn inbound() -> impl Strategy<Value = String> {
    let flags = prop::sample::select(vec![".", "P.", "F.", "S.", "R.", "E.", "SEW.", "FPU."]);
    let option = prop::sample::select(vec![
        "",
        "<nop,nop,TS val 5 ecr 1>",
        "<sack 1001:2001>",
        "<mss 1>",
        "<wscale 14,eol>",
    ]);
    let number = prop::sample::select(vec![0_u32, 1, 2, 1001, 5000, u32::MAX, 1 << 31]);
    let window = prop::sample::select(vec![0_u16, 1, 900, u16::MAX]);
    let bytes = prop::sample::select(vec![0_u32, 1, 1000, 3000]);
    (time(), flags, number.clone(), bytes, number, window, option).prop_map(
        |(time, flags, seq, bytes, ack, window, option)| {
            let end = seq.wrapping_add(bytes);
            format!("{time} < {flags} {seq}:{end}({bytes}) ack {ack} win {window} {option}")
        },
    )
}

fn call() -> impl Strategy<Value = String> {
    let calls = vec![
        "write(4, ..., 10) = 10",
        "write(4, ..., 100000) = 100000",
        "...9 write(4, ..., 900000) = 900000",
        "read(4, ..., 5000) = ...",
        "recv(4, ..., 5000, MSG_PEEK) = ...",
        "close(4) = ...",
        "close(3) = ...",
        "shutdown(4, SHUT_WR) = ...",
        "setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = ...",
        "setsockopt(4, SOL_TCP, TCP_USER_TIMEOUT, [10], 4) = ...",
        "setsockopt(4, SOL_SOCKET, SO_KEEPALIVE, [1], 4) = ...",
        "setsockopt(4, SOL_SOCKET, SO_SNDBUF, [1], 4) = ...",
        "fcntl(4, F_SETFL, O_NONBLOCK) = ...",
        "connect(4, ..., ...) = ...",
        "listen(4, 1) = ...",
        "accept(3, ..., ...) = ...",
        "ioctl(4, SIOCOUTQ, [0]) = ...",
        "poll([{fd=4, events=POLLIN, revents=0}], 1, 0) = ...",
    ];
    (time(), prop::sample::select(calls)).prop_map(|(time, call)| format!("{time} {call}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Nothing panics, whatever arrives and is called in any order. Every prefix of the events runs as a
    /// script, so that a wrong event does not hide later ones.
    #[test]
    fn nothing_panics(events in prop::collection::vec(prop_oneof![inbound(), call()], 1..12)) {
        let mut script = format!("{OPEN}+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n");
        for event in events {
            script += &event;
            script += "\n";
            let _ = run("property", &script);
        }
    }

    /// The machine must not panic on any bytes as a packet.
    #[test]
    fn no_bytes_make_the_machine_panic(packet in prop::collection::vec(any::<u8>(), 0..120)) {
        let settings = crate::machine::Settings::default();
        let mut machine = crate::machine::Machine::new(settings, rxo_frame::Instant::ZERO);
        machine.deliver(&packet);
    }
}
