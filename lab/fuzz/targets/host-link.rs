//! libFuzzer's entry to `rxo_fuzz::host::link`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::host::link(data));
