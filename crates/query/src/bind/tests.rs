//! Names resolve, types are checked, and errors say where and what was expected.
