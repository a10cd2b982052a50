//! Deadlines that are put off far more often than they are met.
//!
//! Each request of a connection puts off when the connection has been idle for too long. A timer of
//! the runtime is in a list of all, under a lock, and moving it for each request costs as much as
//! parsing one. So the timer stays where it is while the deadline moves on: when it comes too early
//! it is set to the deadline anew.
//!
//! ```text
//! deadline  a ──────► b ──────► c              (put off twice)
//! timer     a ─────────────────────► c         (set anew once, when it comes at a)
//! ```

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::time::Instant;

/// Is ready once its time has come.
pub(super) struct Deadline {
    at: Instant,
    timer: Pin<Box<tokio::time::Sleep>>,
}

impl Deadline {
    pub fn new(at: Instant) -> Self {
        Self { at, timer: Box::pin(tokio::time::sleep_until(at)) }
    }

    /// Moves it, to a later time as a rule; an earlier one costs setting the timer.
    pub fn put_off(&mut self, at: Instant) {
        self.at = at;
        if at < self.timer.deadline() {
            self.timer.as_mut().reset(at);
        }
    }
}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        while this.timer.as_mut().poll(context).is_ready() {
            if this.timer.deadline() >= this.at {
                return Poll::Ready(());
            }
            this.timer.as_mut().reset(this.at);
        }
        Poll::Pending
    }
}

impl Sleep for Deadline {}

/// What hyper takes its deadlines from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines;

impl Timer for Deadlines {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline::new(Instant::now() + duration))
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline::new(deadline.into()))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, deadline: std::time::Instant) {
        match sleep.as_mut().downcast_mut_pin::<Deadline>() {
            Some(sleep) => sleep.get_mut().put_off(deadline.into()),
            None => *sleep = self.sleep_until(deadline),
        }
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into()
    }
}

/// How long nothing has moved, if anybody waits for it.
pub(super) struct Wait {
    most: Duration,
    is_waiting: bool,
    deadline: Option<Deadline>,
}

impl Wait {
    /// Is over once it takes that long.
    pub fn new(most: Duration) -> Self {
        Self { most, is_waiting: false, deadline: None }
    }

    /// Something has moved.
    pub fn end(&mut self) {
        self.is_waiting = false;
    }

    /// True once it has taken too long; a first look begins it.
    pub fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let begins = !std::mem::replace(&mut self.is_waiting, true);
        let deadline = match &mut self.deadline {
            Some(deadline) => deadline,
            none => none.insert(Deadline::new(Instant::now() + self.most)),
        };
        if begins {
            deadline.put_off(Instant::now() + self.most);
        }
        Pin::new(deadline).poll(context).is_ready()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_deadline_comes_when_it_was_last_put_off_to() {
        let start = Instant::now();
        let mut deadline = Deadline::new(start + SECOND);
        deadline.put_off(start + 5 * SECOND);
        tokio::select! {
            () = &mut deadline => panic!("too early"),
            () = tokio::time::sleep(2 * SECOND) => {}
        }
        deadline.put_off(start + 7 * SECOND);
        (&mut deadline).await;
        assert_eq!(start.elapsed().as_secs(), 7);
        deadline.put_off(start + 30 * SECOND);
        deadline.put_off(start + 8 * SECOND);
        deadline.await;
        assert_eq!(start.elapsed().as_secs(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn hyper_moves_a_deadline_to_and_fro() {
        let start = Instant::now();
        let mut sleep = Deadlines.sleep(SECOND);
        Deadlines.reset(&mut sleep, (start + 1_000 * SECOND).into());
        Deadlines.reset(&mut sleep, (start + 3 * SECOND).into());
        sleep.await;
        assert_eq!(start.elapsed().as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_begins_anew_once_something_has_moved() {
        let start = Instant::now();
        let mut wait = Wait::new(2 * SECOND);
        for _ in 0..5 {
            let over = poll_fn(|context| Poll::Ready(wait.is_over(context))).await;
            assert!(!over);
            tokio::time::sleep(SECOND).await;
            wait.end();
        }
        poll_fn(|context| if wait.is_over(context) { Poll::Ready(()) } else { Poll::Pending })
            .await;
        assert_eq!(start.elapsed().as_secs(), 7);
    }
}
