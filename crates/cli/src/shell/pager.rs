//! Answers that are longer than the terminal.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::Console;
use crate::failure::Result;

/// Unless `PAGER` names another.
const PAGER: &str = "less -SFRX";

/// Shows an answer: page by page when it has more lines than the terminal.
pub(super) fn show(answer: &[u8], console: &mut Console<'_>) -> Result<()> {
    let lines = answer.iter().filter(|byte| **byte == b'\n').count();
    let is_long = console.size.is_some_and(|(_, height)| lines >= height);
    console.out.flush()?;
    if !is_long || page(answer).is_none() {
        console.out.write_all(answer)?;
    }
    console.out.flush()?;
    Ok(())
}

/// `None` when there is no pager.
fn page(answer: &[u8]) -> Option<()> {
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pager = pager.unwrap_or_else(|| PAGER.to_owned());
    let mut words = pager.split_whitespace();
    let mut command = Command::new(words.next()?);
    let mut child = command.args(words).stdin(Stdio::piped()).spawn().ok()?;
    // A reader who has seen enough stops.
    let _ = child.stdin.take()?.write_all(answer);
    let _ = child.wait();
    Some(())
}
