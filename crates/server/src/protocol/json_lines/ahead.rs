//! What comes while a request is done: a line that ends it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::Told;
use crate::protocol::binary::Stream;
use crate::session::Canceller;

/// As many bytes are read while a request is done; they have no share of the budget.
const AHEAD_BYTES_MAX: usize = 4 << 10;

/// The members that tell which request a line is, or ends.
#[derive(Deserialize)]
struct Ids<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
    #[serde(borrow)]
    op: std::borrow::Cow<'l, str>,
    #[serde(borrow)]
    request: Option<&'l RawValue>,
}

/// A connection whose request is done, and what ends it.
pub(super) struct Ahead<'c> {
    pub stream: &'c mut Stream,
    pub input: &'c mut Vec<u8>,
    pub canceller: Option<Canceller>,
}

impl Ahead<'_> {
    /// Reads while a request is done. Other requests wait where they are; a line that cancels this
    /// one does at once. What goes wrong with the socket is met again when the answer is written.
    pub async fn read_while(
        self,
        line: &[u8],
        answering: impl Future<Output = Told>,
        is_at_end: &mut bool,
    ) -> Told {
        let mut answering = std::pin::pin!(answering);
        let Some(canceller) = &self.canceller else { return answering.await };
        let mut searched = self.cancel(0, line, canceller);
        loop {
            let is_room = !*is_at_end && self.input.len() < AHEAD_BYTES_MAX;
            tokio::select! {
                told = &mut answering => return told,
                read = self.stream.read(self.input), if is_room => match read {
                    Ok(0) | Err(_) => *is_at_end = true,
                    Ok(_) => searched = self.cancel(searched, line, canceller),
                },
            }
        }
    }

    /// Looks at the whole lines from a byte on; where they end.
    fn cancel(&self, searched: usize, line: &[u8], canceller: &Canceller) -> usize {
        let rest = self.input.get(searched..).unwrap_or_default();
        let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') else { return searched };
        let lines = rest.get(..end).unwrap_or_default();
        for found in lines.split(|byte| *byte == b'\n') {
            let Ok(found) = serde_json::from_slice::<Ids<'_>>(found) else { continue };
            let Some(wanted) = found.request.filter(|_| found.op == "cancel") else { continue };
            let own = serde_json::from_slice::<Ids<'_>>(line).ok().and_then(|own| own.id);
            if own.is_some_and(|own| own.get() == wanted.get()) {
                canceller.cancel();
            }
        }
        searched + end + 1
    }
}
