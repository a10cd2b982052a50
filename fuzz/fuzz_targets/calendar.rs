//! See `esker_fuzz::calendar`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::calendar::run(data));
