//! See `esker_fuzz::sniff`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::sniff::run(data));
