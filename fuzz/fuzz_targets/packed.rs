//! See `esker_fuzz::packed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::packed::run(data));
