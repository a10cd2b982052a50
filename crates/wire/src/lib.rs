//! The frames and values of Esker's binary protocol. What they mean is in `docs/reference/wire.md`.
//!
//! | module | what it defines |
//! |---|---|
//! | [`columns`] | rows by column |
//! | [`Code`] | what a client can do about an error |
//! | [`frame`] | the header of every frame, the kinds, the greeting |
//! | [`pack`] | MessagePack, straight into and out of a buffer |
//! | [`value`] | values of fields in it |
#![forbid(unsafe_code)]

mod code;
pub mod columns;
mod error;
pub mod frame;
#[cfg(test)]
mod golden;
pub mod pack;
#[cfg(test)]
mod tests;
pub mod value;

pub use code::Code;
pub use error::{Error, Result};
pub use frame::{Frame, FrameWriter, Kind, MORE, VERSION};
pub use pack::Reader;
