//! See `esker_fuzz::schema`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::schema::run(data));
