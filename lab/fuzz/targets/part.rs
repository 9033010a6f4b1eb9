//! libFuzzer's entry to `rxo_fuzz::part`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::part::run(data));
