//! Values as the text that they are written as.

use std::fmt::{self, Display, Write};

use crate::meter::{Meter, Reservation};
use crate::{Error, Result};

/// A text on the way: it asks for room as it grows.
struct Written<'m, 'r> {
    text: String,
    room: &'m mut Reservation<'r>,
    meter: &'m Meter<'r>,
    failed: Option<Error>,
}

impl Written<'_, '_> {
    fn grow(&mut self, by: usize) -> Result<()> {
        self.meter.work(by)?;
        let needed = self.text.len().saturating_add(by);
        let capacity = self.text.capacity();
        if needed > capacity {
            let wanted = needed.max(capacity.saturating_mul(2));
            self.room.take(wanted - capacity)?;
            self.text.reserve_exact(wanted - self.text.len());
        }
        Ok(())
    }
}

impl Write for Written<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        match self.grow(text.len()) {
            Ok(()) => self.text.push_str(text),
            Err(error) => {
                self.failed.get_or_insert(error);
                return Err(fmt::Error);
            }
        }
        Ok(())
    }
}

/// What a value is written as, within room that is requested as it grows.
pub(super) fn written<'r>(
    value: &dyn Display,
    room: &mut Reservation<'r>,
    meter: &Meter<'r>,
) -> Result<String> {
    let mut written = Written { text: String::new(), room, meter, failed: None };
    match (write!(written, "{value}"), written.failed) {
        (_, Some(error)) => Err(error),
        (Err(error), None) => Err(Error::out_of_range(error.to_string())),
        (Ok(()), None) => Ok(written.text),
    }
}
