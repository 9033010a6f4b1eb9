//! libFuzzer's entry to `rxo_fuzz::host::fast_path`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::host::fast_path(data));
