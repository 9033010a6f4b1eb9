//! libFuzzer's entry to `rxo_fuzz::parse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::parse::run(data));
