//! See `esker_fuzz::row`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::row::run(data));
