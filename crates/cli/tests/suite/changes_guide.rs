//! `docs/guide/changes.md`, followed literally.

use crate::page::{follow, is_here};
use crate::sandbox::Sandbox;

const GUIDE: &str = include_str!("../../../../docs/guide/changes.md");

#[test]
fn the_commands_show_what_the_page_says() {
    if is_here("curl") {
        follow(GUIDE, &Sandbox::new("changes-guide"), &[]);
    }
}
