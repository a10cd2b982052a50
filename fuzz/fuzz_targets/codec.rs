//! See `esker_fuzz::codec`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::codec::run(data));
