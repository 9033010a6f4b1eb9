//! libFuzzer's entry to `rxo_fuzz::resegment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::resegment::run(data));
