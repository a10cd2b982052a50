//! `docs/guide/server.md`, followed literally; `cargo xtask quickstart --serve` shows this test's
//! output. Commands of programs that are not here are left out, and it is said; without curl
//! nothing is run.

use crate::page::{follow, is_here};
use crate::sandbox::Sandbox;

const GUIDE: &str = include_str!("../../../../docs/guide/server.md");

#[test]
fn the_commands_show_what_the_page_says() {
    if !is_here("curl") || !is_here("openssl") {
        return;
    }
    let missing: Vec<&str> =
        ["python3", "redis-cli"].into_iter().filter(|program| !is_here(program)).collect();
    let sandbox = Sandbox::new("server-guide");
    follow(GUIDE, &sandbox, &missing);
}
