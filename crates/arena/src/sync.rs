//! The mutex of the containers' writers: loom's in the models, the standard one otherwise.

#[cfg(loom)]
pub(crate) use loom::sync::Mutex;
#[cfg(not(loom))]
pub(crate) use std::sync::Mutex;
