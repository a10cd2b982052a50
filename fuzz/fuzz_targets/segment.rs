//! See `esker_fuzz::segment`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::segment::run(data));
