//! libFuzzer's entry to `rxo_fuzz::engine`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::engine::run(data));
