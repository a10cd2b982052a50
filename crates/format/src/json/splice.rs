//! Arrays and objects with one part changed: what stays is copied in runs, not part by part.
//!
//! ```text
//! tag width count   ends …│end│…  ends     values …│value│…
//!                   copied │   │ moved      copied  │     │ copied
//! ```

use std::ops::Range;

use super::parser::{header, push_number};
use super::{ARRAY, Ends, Items, Members, OBJECT, Steps, width_of};
use crate::{Error, Result};

/// Parts side by side, of which some give way to another.
struct Spliced<'a> {
    ends: Ends<'a>,
    bytes: &'a [u8],
    /// The places of the parts that go, one or none.
    gone: Range<usize>,
    new: Option<&'a [u8]>,
}

impl<'a> Members<'a> {
    /// The object with another value of a name at a place, or without it.
    pub(super) fn with(
        self,
        at: std::result::Result<usize, usize>,
        name: &'a str,
        value: Option<&'a [u8]>,
        steps: Steps<'_>,
    ) -> Result<Vec<u8>> {
        let gone = match at {
            Ok(place) => place..place + 1,
            Err(place) => place..place,
        };
        let new = value.map(|_| name.as_bytes());
        let names = Spliced { ends: self.name_ends, bytes: self.names, gone: gone.clone(), new };
        container(OBJECT, names.count(), &[names, self.items.spliced(gone, value)], steps)
    }
}

impl<'a> Items<'a> {
    /// The array with another value at a place, or without that.
    pub(super) fn with(
        self,
        place: usize,
        value: Option<&'a [u8]>,
        steps: Steps<'_>,
    ) -> Result<Vec<u8>> {
        let place = place.min(self.len());
        let values = self.spliced(place..(place + 1).min(self.len()), value);
        container(ARRAY, values.count(), &[values], steps)
    }

    fn spliced(self, gone: Range<usize>, new: Option<&'a [u8]>) -> Spliced<'a> {
        Spliced { ends: self.ends, bytes: self.values, gone, new }
    }
}

fn container(tag: u8, count: usize, parts: &[Spliced<'_>], steps: Steps<'_>) -> Result<Vec<u8>> {
    let longest = parts.iter().map(Spliced::len).fold(0, usize::max);
    let width = width_of(longest.max(count));
    let len = parts.iter().map(Spliced::len).sum();
    let mut out = header(tag, width, count, (parts.len(), len));
    parts.iter().try_for_each(|part| part.write_ends(&mut out, width, steps))?;
    for part in parts {
        steps(part.len())?;
        part.write_bytes(&mut out)?;
    }
    Ok(out)
}

impl Spliced<'_> {
    /// How many parts there are then.
    fn count(&self) -> usize {
        self.ends.len() - self.gone.len() + usize::from(self.new.is_some())
    }

    /// Where the bytes are that go.
    fn gone_bytes(&self) -> Range<usize> {
        let start = self.ends.start(self.gone.start);
        start..if self.gone.is_empty() { start } else { self.ends.end(self.gone.start) }
    }

    fn new_len(&self) -> usize {
        self.new.map_or(0, <[u8]>::len) // default: a part that goes leaves no bytes.
    }

    /// How many bytes there are then.
    fn len(&self) -> usize {
        self.bytes.len().saturating_sub(self.gone_bytes().len()) + self.new_len()
    }

    fn write_ends(&self, out: &mut Vec<u8>, width: usize, steps: Steps<'_>) -> Result<()> {
        let gone = self.gone_bytes();
        if width == self.ends.width {
            let before = self.ends.bytes.get(..self.gone.start * width);
            out.extend_from_slice(before.ok_or_else(|| self.damage())?);
        } else {
            for i in 0..self.gone.start {
                steps(width)?;
                push_number(out, self.ends.end(i), width);
            }
        }
        let new_end = gone.start + self.new_len();
        if self.new.is_some() {
            push_number(out, new_end, width);
        }
        for i in self.gone.end..self.ends.len() {
            steps(width)?;
            push_number(out, self.ends.end(i).saturating_sub(gone.end) + new_end, width);
        }
        Ok(())
    }

    fn write_bytes(&self, out: &mut Vec<u8>) -> Result<()> {
        let gone = self.gone_bytes();
        let (before, behind) = (self.bytes.get(..gone.start), self.bytes.get(gone.end..));
        out.extend_from_slice(before.ok_or_else(|| self.damage())?);
        if let Some(new) = self.new {
            out.extend_from_slice(new);
        }
        out.extend_from_slice(behind.ok_or_else(|| self.damage())?);
        Ok(())
    }

    /// The error for ends that lie outside of what they bound.
    fn damage(&self) -> Error {
        let (gone, len) = (self.gone_bytes(), self.bytes.len());
        let place = self.gone.start;
        Error::corrupt(format!("json part {place} at {gone:?} of {len} bytes"))
    }
}

#[cfg(test)]
mod tests {
    use crate::ErrorKind;
    use crate::json::{Json, Replacement, Step, check, edit, parse};

    /// Values whose tables of ends take one, two and four bytes for each.
    const LENGTHS: [usize; 5] = [0, 1, 120, 300, 70_000];

    fn text(len: usize) -> String {
        format!("\"{}\"", "x".repeat(len))
    }

    /// The document that comes of a change at a path.
    fn changed(document: &str, path: &str, change: Option<&str>) -> Vec<u8> {
        let document = parse(document).unwrap();
        let put = change.map(|value| parse(value).unwrap());
        let edited =
            edit(Some(Json::document(&document)), &[Step::Part(path.to_owned())], &mut |_| {
                Ok(put.clone().map_or(Replacement::Remove, Replacement::Put))
            });
        let Replacement::Put(edited) = edited.unwrap() else { return document };
        check(&edited).unwrap();
        edited
    }

    #[test]
    fn an_array_with_a_part_changed_is_what_its_text_is() {
        let array = |parts: &[String]| format!("[{}]", parts.join(","));
        for a in LENGTHS {
            for b in LENGTHS {
                let parts = [text(a), "7".to_owned(), text(b), "[1]".to_owned()];
                for place in 0..=parts.len() {
                    for new in LENGTHS.map(text).into_iter().map(Some).chain([None]) {
                        let mut then = parts.to_vec();
                        match (&new, place < parts.len()) {
                            (Some(new), true) => then[place].clone_from(new),
                            (Some(new), false) => then.push(new.clone()),
                            (None, true) => drop(then.remove(place)),
                            (None, false) => {}
                        }
                        let edited = changed(&array(&parts), &place.to_string(), new.as_deref());
                        assert!(edited == parse(&array(&then)).unwrap(), "{a} {b} {place}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_lies_outside_of_its_array_is_an_error() {
        let mut document = parse("[1,22,333]").unwrap();
        // The end of the first element.
        document[3] = 200;
        let put = |place: i64| {
            let path = [Step::Place(place)];
            let one = parse("1").unwrap();
            edit(Some(Json::document(&document)), &path, &mut |_| Ok(Replacement::Put(one.clone())))
        };
        let error = put(1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        put(2).unwrap();
    }

    #[test]
    fn an_object_with_a_member_changed_is_what_its_text_is() {
        let object = |members: &[(&str, String)]| {
            let member = |(name, value): &(&str, String)| format!("\"{name}\":{value}");
            format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
        };
        let long = "m".repeat(300);
        for a in LENGTHS {
            for b in LENGTHS {
                let members = [("b", text(a)), ("d", "{}".to_owned()), (&long, text(b))];
                for name in ["a", "b", "c", "d", &long, "z", ""] {
                    for new in LENGTHS.map(text).into_iter().map(Some).chain([None]) {
                        let mut then = members.to_vec();
                        then.retain(|(other, _)| *other != name);
                        then.extend(new.clone().map(|new| (name, new)));
                        let edited = changed(&object(&members), name, new.as_deref());
                        assert!(edited == parse(&object(&then)).unwrap(), "{a} {b} {name:?}");
                    }
                }
            }
        }
    }
}
