//! Lists as texts with separators, and texts with separators as lists.

use std::borrow::Cow;
use std::fmt::Write;

use esker_format::{ListBuilder, ListElement, ValueRef};
use memchr::memmem::Finder;

use super::call::Call;
use super::letters::text;
use super::list::{items, list};
use crate::{Result, pieces};

/// An operand of text; `None` for NULL, and where there is none.
fn given<'c>(call: &'c Call<'_, '_>, operand: usize, row: usize) -> Result<Option<&'c str>> {
    match call.has(operand) && !call.operand(operand)?.is_null(row) {
        true => text(call, operand, row).map(Some),
        false => Ok(None),
    }
}

/// The items as text with a separator in between.
pub(super) fn joined<'a>(call: &Call<'_, 'a>, row: usize) -> Result<Option<Cow<'a, [u8]>>> {
    let (Some(list), Some(separator)) = (list(call, 0, row)?, given(call, 1, row)?) else {
        return Ok(None);
    };
    let null = given(call, 2, row)?;
    let (mut joined, mut is_first) = (String::new(), true);
    for item in items(call, list) {
        let value = item?.value(list.element())?;
        if value.is_null() && null.is_none() {
            continue;
        }
        if !is_first {
            joined.push_str(separator);
        }
        is_first = false;
        match null.filter(|_| value.is_null()) {
            Some(null) => joined.push_str(null),
            None => write!(joined, "{value}").map_err(|e| call.error(e))?,
        }
    }
    Ok(Some(Cow::Owned(joined.into_bytes())))
}

/// The parts of a text as a list.
pub(super) fn split<'a>(call: &Call<'_, 'a>, row: usize) -> Result<Option<Cow<'a, [u8]>>> {
    let Some(whole) = given(call, 0, row)? else { return Ok(None) };
    let null = given(call, 2, row)?;
    let mut made = ListBuilder::new(ListElement::Text);
    let mut push = |part: &str| {
        let value = if null == Some(part) { ValueRef::Null } else { ValueRef::Text(part) };
        made.push(value).map_err(crate::Error::from)
    };
    match given(call, 1, row)? {
        _ if whole.is_empty() => {}
        None => {
            for (at, character) in whole.char_indices() {
                push(whole.get(at..at + character.len_utf8()).unwrap_or_default())?;
            }
        }
        Some("") => push(whole)?,
        Some(separator) => {
            let (finder, mut start) = (Finder::new(separator), 0);
            pieces::find_all(whole.as_bytes(), &finder, call.meter, |at| {
                push(whole.get(start..at).unwrap_or_default())?;
                start = at + separator.len();
                Ok(())
            })?;
            push(whole.get(start..).unwrap_or_default())?;
        }
    }
    Ok(Some(Cow::Owned(made.into_bytes())))
}
