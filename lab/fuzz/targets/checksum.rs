//! libFuzzer's entry to `rxo_fuzz::checksum`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::checksum::run(data));
