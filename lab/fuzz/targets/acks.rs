//! libFuzzer's entry to `rxo_fuzz::acks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::acks::run(data));
