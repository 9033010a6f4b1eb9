//! `--confirm`: a run without a confirmation gives everything back, so that an interrupted session recovers.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::Lab;

use super::{becomes, lab, state};
use crate::Test;
use crate::process::{Rxo, command, run};
use crate::report::Scratch;
use crate::setup::SetUp;

pub(crate) const TESTS: &[Test] = &[
    ("hostlife_a_run_that_nobody_confirms_gives_everything_back", nobody_confirms),
    ("hostlife_a_run_that_is_confirmed_goes_on", confirmed),
];

fn start(lab: &Lab, socket: &Path, time: &str) -> Rxo {
    let flags = SetUp::TakeOver.flags();
    // With the watchdog off, only the missing confirmation ends a hung worker.
    let flags = format!("{flags} --watchdog off --control {} --confirm {time}", socket.display());
    Rxo::start(lab.host(), &flags).0
}

fn nobody_confirms() {
    for hangs in [false, true] {
        let (scratch, lab) = (Scratch::new(&format!("confirm-{hangs}")), lab());
        let before = state(&lab);
        let rxo = start(&lab, &scratch.file("rxo.sock"), "1s");
        if hangs {
            rxo.signal_worker("STOP");
        }
        let (code, _, said) = rxo.end();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("no confirmation has come; everything is given back"), "{said}");
        becomes(&lab, &before, &format!("hangs: {hangs}"));
    }
    let lab = lab();
    let output = run(lab.host(), &format!("run {} --confirm 60s", SetUp::TakeOver.flags()));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("--control"), "{said}");
}

fn confirmed() {
    const TIME: Duration = Duration::from_secs(3);
    let scratch = Scratch::new("confirmed");
    let socket = scratch.file("rxo.sock");
    loop {
        let lab = lab();
        let begin = Instant::now();
        let rxo = start(&lab, &socket, "3s");
        let output = command(&format!("ctl {} confirm", socket.display())).output().unwrap();
        // On a busy machine the time may already have passed.
        let is_in_time = begin.elapsed() < TIME;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if is_in_time {
            assert!(output.status.success() && said.contains("confirmed"), "{said}");
            thread::sleep(TIME + TIME / 2);
            rxo.signal("TERM");
        }
        let (code, _, said) = rxo.end();
        if is_in_time {
            assert_eq!((code, said.as_str()), (Some(0), ""));
            return;
        }
    }
}
