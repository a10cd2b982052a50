//! What a field says, before its type is known.

use std::borrow::Cow;

use esker_format::DataType;

use crate::dialect::Csv;
use crate::json::unescaped;
use crate::nulls::Nulls;

/// A field as it stands in a file, understood.
pub(crate) enum FieldText<'a> {
    Null,
    /// There is no such field in the row.
    Missing,
    /// A value as text.
    Text(Cow<'a, [u8]>),
    /// A value of a kind that the column does not take.
    Misfit,
}

/// Understands the fields of one column.
pub(crate) trait FieldReader {
    fn read<'a>(&self, raw: &'a [u8]) -> FieldText<'a>;

    /// Whether an empty field is NULL.
    fn empty_is_null(&self) -> bool;
}

/// Fields of CSV.
pub(crate) struct CsvFields<'a> {
    pub(crate) csv: Csv,
    pub(crate) has_quotes: bool,
    pub(crate) nulls: &'a Nulls,
}

impl FieldReader for CsvFields<'_> {
    #[inline]
    fn read<'a>(&self, raw: &'a [u8]) -> FieldText<'a> {
        if self.has_quotes && self.csv.opens(raw.first()) {
            FieldText::Text(self.csv.unquoted(raw))
        } else if self.nulls.contains(raw) {
            FieldText::Null
        } else {
            FieldText::Text(Cow::Borrowed(raw))
        }
    }

    fn empty_is_null(&self) -> bool {
        self.nulls.has_empty()
    }
}

/// Values of JSON: a number may be written as a string, nothing else may be what it is not, unless
/// it is text that takes what is written.
pub(crate) struct JsonFields {
    takes_bools: bool,
    takes_numbers: bool,
    takes_all: bool,
    takes_strings: bool,
    /// As they are written.
    takes_spellings: bool,
    /// Arrays and objects, too.
    takes_nested: bool,
    /// Arrays, as lists.
    takes_arrays: bool,
}

impl JsonFields {
    pub(crate) fn of(data_type: DataType) -> Self {
        Self {
            takes_bools: data_type == DataType::Bool,
            takes_numbers: data_type.is_numeric(),
            takes_all: data_type == DataType::Json,
            takes_strings: data_type != DataType::Bool,
            takes_spellings: false,
            takes_nested: true,
            takes_arrays: matches!(data_type, DataType::List(_)),
        }
    }

    /// The same, where text takes numbers, and true and false, as they are written.
    pub(crate) fn with_spellings(mut self, data_type: DataType) -> Self {
        self.takes_spellings = data_type == DataType::Text;
        self
    }

    /// The same, as inference has it: a string is no number, and arrays and objects are no text.
    pub(crate) fn with_inference(mut self) -> Self {
        self.takes_strings &= !self.takes_numbers;
        self.takes_nested = false;
        self
    }

    /// The same of the names of rows, which are strings.
    pub(crate) fn of_names(mut self) -> Self {
        self.takes_strings = true;
        self
    }
}

impl FieldReader for JsonFields {
    #[inline]
    fn read<'a>(&self, raw: &'a [u8]) -> FieldText<'a> {
        match raw {
            [] => FieldText::Missing,
            [b'n', ..] => FieldText::Null,
            _ if self.takes_all => FieldText::Text(Cow::Borrowed(raw)),
            [b'"', inner @ .., b'"'] if self.takes_strings => {
                unescaped(inner).map_or(FieldText::Misfit, FieldText::Text)
            }
            [b'-' | b'0'..=b'9', ..] if self.takes_numbers => FieldText::Text(Cow::Borrowed(raw)),
            [b't' | b'f', ..] if self.takes_bools => FieldText::Text(Cow::Borrowed(raw)),
            [b'[', ..] if self.takes_arrays => FieldText::Text(Cow::Borrowed(raw)),
            [b'"', ..] => FieldText::Misfit,
            [b'{' | b'[', ..] if !self.takes_nested => FieldText::Misfit,
            _ if self.takes_spellings => FieldText::Text(Cow::Borrowed(raw)),
            _ => FieldText::Misfit,
        }
    }

    fn empty_is_null(&self) -> bool {
        true
    }
}
