//! What a line shows, in the order in which it is written, until it is known how long it is.

use std::cell::RefCell;
use std::io::{Result, Write};
use std::rc::Rc;

/// Takes answers and notes. Flushed, it shows what it has taken; see [`Screen::take`] for what is
/// paged.
#[derive(Clone, Default)]
pub(super) struct Screen(Rc<RefCell<Vec<u8>>>);

impl Screen {
    /// What has been written since it was last flushed or taken.
    pub(super) fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        let mut out = std::io::stdout();
        out.write_all(&self.take())?;
        out.flush()
    }
}
