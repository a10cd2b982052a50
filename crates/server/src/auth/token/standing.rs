//! What is remembered of a token that a connection has shown.

use std::sync::{Mutex, PoisonError};

/// A token that was shown, and until when it holds as far as was looked: looking again costs
/// something only after tokens have changed.
#[derive(Debug)]
pub struct Standing {
    id: String,
    /// The generation of tokens that was looked at, and when the token ended then. Under one lock:
    /// of two requests at the same time, the one that looked earlier must not have the last word.
    seen: Mutex<(u64, i64)>,
}

impl Standing {
    /// Of the token with an id.
    #[must_use]
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), seen: Mutex::new((0, 0)) }
    }

    /// When it ends, in microseconds since 1970; long ago when there is no such token.
    pub(super) fn end_us(&self, generation: u64, look: impl Fn(&str) -> Option<i64>) -> i64 {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if generation > seen.0 {
            *seen = (generation, look(&self.id).unwrap_or(i64::MIN));
        }
        seen.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_looked_at_an_older_generation_does_not_bring_a_token_back() {
        let standing = Standing::new("7");
        assert_eq!(standing.end_us(1, |id| (id == "7").then_some(i64::MAX)), i64::MAX);
        assert_eq!(standing.end_us(2, |_| None), i64::MIN);
        assert_eq!(standing.end_us(1, |_| Some(i64::MAX)), i64::MIN);
        assert_eq!(standing.end_us(2, |_| Some(i64::MAX)), i64::MIN);
    }
}
