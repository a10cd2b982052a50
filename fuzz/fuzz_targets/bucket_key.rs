//! See `esker_fuzz::bucket_key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::bucket_key::run(data));
