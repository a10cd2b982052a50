//! The real machine.
