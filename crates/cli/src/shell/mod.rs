//! `esker sql DB` on a terminal: statements and commands, one after the other.
//!
//! | module | what it defines |
//! |---|---|
//! | `session` | what a line that was typed does, apart from the terminal |
//! | `words` | what a word may become |
//! | `editor` | reading lines, with history and completion |
//! | `pager` | answers that are longer than the terminal |

mod editor;
mod pager;
mod session;
#[cfg(test)]
mod tests;
mod words;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use esker::{Database, ErrorKind, Options};

use crate::failure::{Failure, Result};
use crate::remote::Remote;
use crate::sql::Settings;
use crate::{Console, remote};
use editor::{Editor, Input};
use session::{Next, Session};

pub(crate) fn run(dir: &Path, settings: Settings, console: &mut Console<'_>) -> Result<()> {
    let cancel = Arc::new(AtomicBool::new(false));
    let mut session = match remote::address(dir) {
        Some(address) => {
            remote::refuse_options(&[("--dry-run", settings.dry_run)])?;
            Session::remote(Remote::connect(address, Arc::clone(&cancel))?, settings)
        }
        None => Session::new(open(dir, &cancel, console)?, settings),
    };
    // Ctrl-C ends the statement that runs; while a line is typed, the editor takes it.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&cancel))
        .map_err(|e| Failure::system(format!("listen for Ctrl-C: {e}")))?;
    writeln!(console.out, "Statements end with `;`. \\? lists the commands, \\q ends.")?;
    console.out.flush()?;
    let mut editor = Editor::new(session.words())?;
    loop {
        let line = match editor.read()? {
            Input::Line(line) => line,
            Input::Cancelled => continue,
            Input::End => break,
        };
        cancel.store(false, Ordering::Relaxed);
        let mut answer = Vec::new();
        let shown = &mut Console { out: &mut answer, err: console.err, ..*console };
        let next = session.take(&line, shown);
        pager::show(&answer, console)?;
        match next {
            Ok(Next::Line) => {}
            Ok(Next::End) => break,
            Err(failure) => writeln!(console.err, "error: {failure}")?,
        }
        session.learn_words();
    }
    session.close()
}

/// Opens for writing; for reading when somebody else writes.
fn open(dir: &Path, cancel: &Arc<AtomicBool>, console: &mut Console<'_>) -> Result<Database> {
    let options = || Options::new().create(false).cancel(Arc::clone(cancel));
    match options().open(dir) {
        Err(e) if e.kind() == ErrorKind::Locked => {
            let database = options().read_only(true).open(dir)?;
            writeln!(console.err, "opened for reading only: {e}")?;
            Ok(database)
        }
        opened => Ok(opened?),
    }
}
