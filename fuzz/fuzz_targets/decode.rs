#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| aviary_fuzz::decode(data));
