//! Rows on their way into a commit that requests of all protocols share.

use esker::{Appended, KeptEntry, Lead, ReadyRows, Stream};
use tokio::sync::oneshot;

use super::event_outcomes::given_up;
use crate::Result;
use crate::session::panic_guard::caught;

/// Rows that wait for their commit, in the order in which they were submitted.
pub(super) struct Submitted {
    done: oneshot::Receiver<Appended>,
    /// The duty to make the commit. Where nobody waits any more, it is made as this is dropped.
    lead: Option<Lead>,
}

impl Submitted {
    /// Rows that are ready, all of them or each for itself, with an entry that is in their commit.
    pub fn new(stream: &Stream, rows: (ReadyRows, bool), entry: Option<KeptEntry>) -> Self {
        let (sender, done) = oneshot::channel::<Appended>();
        let lead = stream.submit(rows, entry, move |appended| {
            drop(sender.send(appended));
        });
        Self { done, lead }
    }

    /// What became of them; those that are few are committed on this thread.
    pub async fn outcome(mut self, is_small: bool) -> Result<Appended> {
        if self.lead.is_some() {
            // Those that are ready now add their events.
            tokio::task::yield_now().await;
        }
        if let Some(lead) = self.lead.take() {
            if is_small && !lead.may_wait() {
                caught(|| lead.run())?;
            } else {
                let led = tokio::task::spawn_blocking(move || caught(|| lead.run()));
                led.await.map_err(|_| given_up())??;
            }
        }
        let outcome = (&mut self.done).await;
        outcome.map_err(|_| given_up())
    }
}

impl Drop for Submitted {
    /// The client is gone: the commit is made all the same, beside the runtime where it may wait.
    fn drop(&mut self) {
        let Some(lead) = self.lead.take() else { return };
        match (lead.may_wait(), tokio::runtime::Handle::try_current()) {
            (true, Ok(runtime)) => drop(runtime.spawn_blocking(move || caught(|| lead.run()))),
            _ => drop(caught(|| lead.run())),
        }
    }
}
