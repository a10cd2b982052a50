//! See `esker_fuzz::resp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::resp::run(data));
