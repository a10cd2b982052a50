//! See `esker_fuzz::list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::list::run(data));
