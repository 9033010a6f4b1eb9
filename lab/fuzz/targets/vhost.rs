//! libFuzzer's entry to `rxo_fuzz::vhost`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::vhost::run(data));
