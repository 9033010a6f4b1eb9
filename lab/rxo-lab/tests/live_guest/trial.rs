//! Runs `rxo-lab guests`: two real Linux guests, each in an emulated machine, behind `rxo guest`.

use std::process::{Command, Output};

use serde_json::Value;

fn rxo(line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rxo-lab")).args(line.split_whitespace()).output().unwrap()
}

pub(crate) fn two_linux_guests_get_a_file_and_send_it_back() {
    let output = rxo("guests --guests 2 --json");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let outcomes: Value = serde_json::from_slice(&output.stdout).unwrap();
    let outcomes = outcomes.as_array().unwrap();
    assert_eq!(outcomes.len(), 2);
    for outcome in outcomes {
        assert_eq!(outcome["intact"], true, "{outcome}");
        let figure = |name: &str| outcome["figures"][name].as_u64().unwrap();
        assert!(figure("bytes") >= 8 << 20, "{outcome}");
        assert!(figure("deliveries") <= figure("frames"), "{outcome}");
        assert!(figure("sent") > 0, "{outcome}");
    }
}

pub(crate) fn a_number_of_guests_out_of_range_is_one_line() {
    let output = rxo("guests --guests 9");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.trim_end(), "rxo: --guests 9: give a number from 1 to 8");
}
