//! `kill_loop`: kills a loading process again and again.

fn main() {}
