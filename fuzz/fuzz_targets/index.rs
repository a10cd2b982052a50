//! See `esker_fuzz::index`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::index::run(data));
