//! Rows as JSON objects.
//!
//! Like CSV, rows are first only cut into spans, one for each field of the table, and then read
//! column by column: no tree of values is made.
//!
//! | module | what it defines |
//! |---|---|
//! | `scan` | where strings, numbers and members end |
//! | `tokenizer` | where the fields of a chunk stand |
//! | `names` | which field a name is |
//! | `place` | where the rows of a file are |
//! | `path` | the way to rows within a document |
//! | `text` | what a string says |

mod names;
mod path;
mod place;
mod scan;
mod text;
mod tokenizer;

pub(crate) use names::Names;
pub(crate) use path::enter;
pub(crate) use place::{RowsPlace, find as find_rows};
pub(crate) use scan::{Object, last_element_end, own_members};
pub(crate) use text::unescaped;
pub(crate) use tokenizer::{Beside, Found, Rest, Rows, Tokenizer, is_same};

#[cfg(test)]
mod tests;
