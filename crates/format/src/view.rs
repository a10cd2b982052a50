//! Queries that have a name, and are read as tables are.

use crate::codec::{Reader, Writer};
use crate::{DataType, Error, Result, comment};

/// The most views of a database.
pub const VIEWS_MAX: usize = 65_536;
/// The most columns of a view.
pub const COLUMNS_MAX: usize = 65_536;
/// The most settings and inputs of a view.
const PARTS_MAX: usize = 65_536;

/// A view, as it is stored.
///
/// The query is kept twice: as it was written, to be shown, and as the layers above read it. Its
/// columns are those that it had when it was made: a field that one of its tables gets later is
/// none of them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct View {
    /// The query as it was written.
    pub text: String,
    /// The query in the form that the layers above read.
    pub query: String,
    /// Its columns, in order.
    pub columns: Vec<ViewColumn>,
    /// What the session that made it had chosen, as names and values.
    pub settings: Vec<(String, String)>,
    /// The tables and views that it reads, by name.
    pub inputs: Vec<ViewInput>,
    /// What its users say of it; stored behind it.
    pub comment: Option<String>,
    /// Whether it is a rollup: groups of one table, of the shape that partial aggregates answer;
    /// stored behind the comment.
    pub is_rollup: bool,
}

/// A column of a [`View`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
}

/// A table or another view that a [`View`] reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewInput {
    /// Its name.
    pub name: String,
    /// Whether it is another view.
    pub is_view: bool,
    /// Of a table the greatest number of a field that there was, of a view how many columns it
    /// had: later ones are not seen.
    pub through: u32,
}

impl View {
    /// Appends the stored form, without what is behind it.
    pub fn encode(&self, out: &mut Writer) {
        out.text(&self.text);
        out.text(&self.query);
        out.count(self.columns.len());
        for ViewColumn { name, data_type } in &self.columns {
            out.text(name);
            out.text(&data_type.to_string());
        }
        out.count(self.settings.len());
        for (name, value) in &self.settings {
            out.text(name);
            out.text(value);
        }
        out.count(self.inputs.len());
        for ViewInput { name, is_view, through } in &self.inputs {
            out.text(name);
            out.u8(u8::from(*is_view));
            out.u32(*through);
        }
    }

    /// Reads the stored form, without what is behind it.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a view.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let mut view = Self {
            text: input.text()?.to_owned(),
            query: input.text()?.to_owned(),
            ..Self::default()
        };
        for _ in 0..input.count(COLUMNS_MAX)? {
            let (name, data_type) = (input.text()?.to_owned(), input.text()?);
            let unknown = |_| Error::corrupt(format!("a view's column of type {data_type:?}"));
            let data_type = data_type.parse().map_err(unknown)?;
            view.columns.push(ViewColumn { name, data_type });
        }
        for _ in 0..input.count(PARTS_MAX)? {
            view.settings.push((input.text()?.to_owned(), input.text()?.to_owned()));
        }
        for _ in 0..input.count(PARTS_MAX)? {
            let name = input.text()?.to_owned();
            let is_view = match input.u8()? {
                0 => false,
                1 => true,
                other => return Err(Error::corrupt(format!("flag {other} of a view"))),
            };
            view.inputs.push(ViewInput { name, is_view, through: input.u32()? });
        }
        Ok(view)
    }

    /// Appends what is behind the stored form: the comment, and whether it is a rollup.
    pub(crate) fn encode_rest(&self, out: &mut Writer) {
        comment::encode(self.comment.as_deref(), out);
        out.u8(u8::from(self.is_rollup));
    }

    /// Whether it is a rollup, from the byte behind the comment.
    pub(crate) fn decode_is_rollup(input: &mut Reader<'_>) -> Result<bool> {
        match input.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Error::corrupt(format!("flag {other} of a view"))),
        }
    }

    /// Whether it reads a table or view of this name.
    #[must_use]
    pub fn reads(&self, name: &str) -> bool {
        self.inputs.iter().any(|input| input.name == name)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::edit::Edit;

    /// A view with something of everything.
    pub(crate) fn full() -> View {
        View {
            text: "SELECT a FROM t".into(),
            query: r#"{"table":"t"}"#.into(),
            columns: vec![ViewColumn { name: "a".into(), data_type: DataType::I64 }],
            settings: vec![("nulls_order".into(), "greatest".into())],
            inputs: vec![ViewInput { name: "t".into(), is_view: false, through: 3 }],
            comment: None,
            is_rollup: false,
        }
    }

    /// Version 17 of the log ends a frame with the comment, version 16 of checkpoints has none of
    /// the flags.
    #[test]
    fn views_of_before_there_were_rollups_are_read() {
        let edit = Edit::SetView { name: "v".into(), view: full() };
        let bytes = edit.encode();
        let (flag, before) = bytes.split_last().unwrap();
        assert_eq!(*flag, 0);
        assert_eq!(Edit::decode(edit.frame_kind(), before).unwrap(), edit);
        for (flag, is_rollup) in [(0, Some(false)), (1, Some(true)), (2, None)] {
            let decoded = Edit::decode(edit.frame_kind(), &[before, &[flag]].concat()).ok();
            let found = decoded.map(|edit| match edit {
                Edit::SetView { view, .. } => view.is_rollup,
                other => panic!("{other:?}"),
            });
            assert_eq!(found, is_rollup, "flag {flag}");
        }
    }

    #[test]
    fn survives_a_round_trip() {
        let mut out = Writer::new();
        full().encode(&mut out);
        let bytes = out.into_bytes();
        assert_eq!(View::decode(&mut Reader::new(&bytes)).unwrap(), full());
        for end in 0..bytes.len() {
            assert!(View::decode(&mut Reader::new(&bytes[..end])).is_err(), "{end} bytes");
        }
    }
}
