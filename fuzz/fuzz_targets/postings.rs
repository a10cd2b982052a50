//! See `esker_fuzz::postings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::postings::run(data));
