//! See `esker_fuzz::http`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::http::run(data));
