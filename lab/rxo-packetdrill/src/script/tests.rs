//! Tests of the parser, and of its error reports.

use proptest::prelude::*;

use super::*;

fn only_event(text: &str) -> Event {
    let script = Script::read(text).unwrap();
    assert_eq!(script.events.len(), 1, "{script:?}");
    script.events[0].clone()
}

#[test]
fn times_are_read() {
    let millis = Duration::from_millis;
    let time = |text: &str| only_event(&format!("{text} close(3) = 0")).time;
    assert_eq!(time("*"), Time::Any);
    assert_eq!(time("1"), Time::At(millis(1000)));
    assert_eq!(time("+.25"), Time::After(millis(250)));
    assert_eq!(time("0.1~0.2"), Time::Between(millis(100), millis(200)));
    assert_eq!(time("+0~+.5"), Time::AfterBetween(millis(0), millis(500)));
}

#[test]
fn a_segment_says_again_what_was_read() {
    for text in [
        "S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>",
        "[ect0] P. 1:1001(1000) ack 1",
        "SEW 0:0(0) <...>",
        "- 1:1001(1000) win 20000",
        ". 1:1(0) ack 1 win 257 <sack 3001:5001 7001:8001,nop,nop>",
        "R 1:1(0)",
        "F 1:1(0) ack 1",
        "PU. 1:3(2) ack 9 win 7 urg 1 <nop,nop,TS val 4294967295 ecr 0>",
    ] {
        let Action::In(segment) = only_event(&format!("+0 < {text}")).action else { panic!() };
        assert_eq!(segment.to_string(), text);
    }
}

#[test]
fn calls_are_read() {
    let call = |text: &str| match only_event(text).action {
        Action::Call(call) => call,
        other => panic!("{other:?}"),
    };
    let write = call("+0...0.3 write(4, ..., 61000) = 61000");
    assert_eq!(write.until, Some(Duration::from_millis(300)));
    assert_eq!(write.arguments, [Value::Number(4), Value::Any, Value::Number(61_000)]);
    let connect = call("0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)");
    assert_eq!(connect.result, Value::Number(-1));
    assert_eq!(connect.error.as_deref(), Some("EINPROGRESS"));
    let flags = call("0 fcntl(3, F_GETFL) = 0x2 (flags O_RDWR)");
    assert_eq!((flags.result, flags.error), (Value::Number(2), None));
    let poll = call("0 poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLOUT}], 1, 0) = 1");
    let events = Value::Number(5);
    let Value::List(list) = &poll.arguments[0] else { panic!() };
    let Value::Fields(fields) = &list[0] else { panic!() };
    assert_eq!(fields[1], ("events".to_owned(), events));
}

#[test]
fn options_comments_commands_and_code_are_read() {
    let text = "// a comment\n--tolerance_usecs=500\n--so_flags=\"ecn, sack=off\"\n--x\n\
                `sysctl`\n/* two\nlines */ 0 %{ assert True }%\n+0 `true`";
    let script = Script::read(text).unwrap();
    let options: Vec<_> = script.options.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(options, [("tolerance_usecs", "500"), ("so_flags", "ecn, sack=off"), ("x", "")]);
    assert_eq!(script.events[0].action, Action::Command("sysctl".to_owned()));
    assert_eq!(script.events[1].action, Action::Code(" assert True ".to_owned()));
    assert_eq!(script.events[1].line, 7);
}

#[test]
fn icmp_is_read() {
    let event = only_event("+0 < icmp unreachable frag_needed mtu 1200 [1:1001(1000)]");
    let icmp = Icmp {
        kind: "unreachable".to_owned(),
        code: Some("frag_needed".to_owned()),
        mtu: Some(1200),
        seq: Some(1),
    };
    assert_eq!(event.action, Action::Icmp(icmp));
}

#[test]
fn mistakes_name_line_and_remedy() {
    let error = |text: &str| Script::read(text).unwrap_err().to_string();
    assert_eq!(
        error("0 close(3) = 0\n+0 < Q 0:0(0)"),
        "line 2: expected flags (FSRPUEW.), found Q"
    );
    assert_eq!(
        error("+0 < . 1:2(2) ack 1"),
        "line 1: expected a length that leads from the first number to the last, found )"
    );
    assert_eq!(error("+0 socket(NOPE) = 3"), "line 1: expected a known name, found NOPE");
    assert_eq!(error("+0"), "line 1: expected <, >, a call, a command or code, found the end");
    assert_eq!(error("\"x"), "line 1: quotes without their end");
}

/// Fragments of the language, because random text alone is rejected too early.
const PIECES: &[&str] = &[
    "+0",
    "0",
    "*",
    "~",
    "+.1",
    "...",
    "<",
    ">",
    "S",
    ".",
    "-",
    "1:1(0)",
    "1:1001(1000)",
    "ack",
    "1",
    "win",
    "<nop,nop,",
    "sack 1:2",
    "TS val 1 ecr 2",
    ">",
    "<...>",
    "close(",
    "3",
    ")",
    "=",
    "-1",
    "EAGAIN",
    "[",
    "{",
    "fd=",
    "|",
    "`x`",
    "%{",
    "}%",
    "--so_flags",
    "\"",
    "//",
    "/*",
    "\n",
    "icmp",
    "mtu",
    "0x",
    "é",
    "99999999999999999999",
];

proptest! {
    /// The parser must not panic on any text.
    #[test]
    fn nothing_panics(text in ".{0,200}") {
        let _ = Script::read(&text);
    }

    #[test]
    fn nothing_panics_close_to_the_language(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40),
    ) {
        let _ = Script::read(&pieces.join(" "));
    }
}
