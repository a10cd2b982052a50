//! For how long what a rollup came to is kept.

use esker_format::schema::StreamOption;

use crate::{Error, Result};

/// For how long something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptFor {
    /// For ever.
    Ever,
    /// For so many microseconds.
    Span(u64),
}

impl KeptFor {
    /// The value of option `retention`: a length of time, or `forever`.
    ///
    /// ```
    /// use esker::KeptFor;
    ///
    /// assert_eq!(KeptFor::read("forever")?, KeptFor::Ever);
    /// assert_eq!(KeptFor::read("2 hours")?, KeptFor::Span(7_200_000_000));
    /// assert!(KeptFor::read("soon").is_err());
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for another text.
    pub fn read(text: &str) -> Result<Self> {
        if text.eq_ignore_ascii_case("forever") {
            return Ok(Self::Ever);
        }
        match StreamOption::read("retention", Some(text))? {
            StreamOption::Retention(Some(keep_us)) => Ok(Self::Span(keep_us)),
            _ => Err(Error::corrupt(format!("option retention: {text:?} is another option"))),
        }
    }
}
