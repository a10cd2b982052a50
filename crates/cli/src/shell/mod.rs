//! `esker DB` on a terminal: statements and commands, one after the other.
//!
//! | module | what it defines |
//! |---|---|
//! | `session` | what a line that was typed does, apart from the terminal |
//! | `commands` | the commands: one table |
//! | `describe`, `files`, `look` | what they do |
//! | `words` | what a word may become |
//! | `editor` | reading lines, with history and completion |
//! | `screen`, `pager` | answers, and those that are longer than the terminal |

mod commands;
mod describe;
mod editor;
mod files;
mod look;
mod pager;
mod screen;
mod session;
#[cfg(test)]
mod tests;
mod words;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Console;
use crate::failure::{Failure, Result};
use crate::output::Style;
use crate::sql::Settings;
use editor::{Editor, Input};
use screen::Screen;
use session::{Next, Session};

pub(crate) fn run(db: Option<&Path>, settings: Settings, console: &mut Console<'_>) -> Result<()> {
    let cancel = Arc::new(AtomicBool::new(false));
    let rest = r"\pset rows all shows all, \o FILE writes them to a file";
    let style = Style { counts: true, rest, ..settings.style };
    let settings = Settings { style, ..settings };
    let mut session = Session::open(db, settings, &cancel, console)?;
    // Ctrl-C ends the statement that runs; while a line is typed, the editor takes it.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&cancel))
        .map_err(|e| Failure::system(format!("listen for Ctrl-C: {e}")))?;
    writeln!(console.out, "Esker {}: {}.", env!("CARGO_PKG_VERSION"), session.place)?;
    writeln!(console.out, "Statements end with `;`. \\? lists the commands, \\q ends.")?;
    console.out.flush()?;
    let mut editor = Editor::new(session.words(), console.colors)?;
    loop {
        let line = match editor.read(session.is_in_transaction())? {
            Input::Line(line) => line,
            Input::Cancelled => continue,
            Input::End => break,
        };
        cancel.store(false, Ordering::Relaxed);
        let screen = Screen::default();
        let (mut out, mut err) = (screen.clone(), screen.clone());
        let next = if session::is_live(&line) {
            session.take(&line, console)
        } else {
            let shown = &mut Console { out: &mut out, err: &mut err, is_merged: true, ..*console };
            let next = session.take(&line, shown);
            pager::show(&screen.take(), console)?;
            next
        };
        match next {
            Ok(Next::Line) => {}
            Ok(Next::Insert(text)) => editor.insert(&text),
            Ok(Next::End) => break,
            Err(failure) => {
                let word = console.error_word();
                writeln!(console.err, "{word} {failure}")?;
            }
        }
        session.learn_words();
    }
    session.close()
}

/// Runs statements and commands that are not typed, to the end or the first that fails.
pub(crate) fn run_script(
    db: Option<&Path>,
    text: &str,
    settings: Settings,
    console: &mut Console<'_>,
) -> Result<()> {
    let mut session = Session::open(db, settings, &Arc::default(), console)?;
    let done = session.run_script(text, console);
    let closed = session.close();
    done.and(closed)
}
