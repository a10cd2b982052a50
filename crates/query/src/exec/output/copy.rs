//! Fields on their way out: rows of encoded columns are appended to columns, by type, without a
//! vector of values between.

use esker_format::{
    Batch, BytesReader, Codes, Column, ColumnSlice, Data, DataType, Validity, ValueRef, Values,
    VariableValues, with_values,
};

use crate::evaluate::Selection;
use crate::{Error, Result};

/// Appends the selected rows of a column of the same type; false, and nothing is appended, where
/// they have to be converted.
///
/// # Errors
/// `OutOfRange` when the texts would pass 4 GiB.
pub(crate) fn append(
    to: &mut Column,
    from: &ColumnSlice<'_>,
    selection: Selection<'_>,
) -> Result<bool> {
    let before = to.len();
    if matches!(from.data, Data::Constant(ValueRef::Null)) {
        to.append_nulls(selection.len());
        return Ok(true);
    }
    let nulls = match from.validity {
        Validity::AllValid => None,
        _ => {
            let null = |i| u8::from(from.is_null(selection.row(i) as usize));
            let nulls: Vec<u8> = (0..selection.len()).map(null).collect();
            nulls.contains(&1).then_some(nulls)
        }
    };
    let is_bool = to.data_type == DataType::Bool;
    let is_done = match (&mut to.values, from.data) {
        (Values::Variable(to), _) => {
            append_bytes(to, from, selection, nulls.as_deref())?;
            true
        }
        (values, Data::Narrowed { base, codes }) if !is_bool => {
            append_narrowed(values, base, codes, selection)
        }
        (values, data) => append_plain(values, data, selection),
    };
    if is_done {
        mark(to, before, nulls);
    }
    Ok(is_done)
}

/// Notes which of the rows from `before` on are NULL; these hold zeros.
fn mark(column: &mut Column, before: usize, nulls: Option<Vec<u8>>) {
    let Some(nulls) = nulls else {
        let rows = column.len();
        column.nulls.iter_mut().for_each(|marks| marks.resize(rows, 0));
        return;
    };
    with_values!(
        &mut column.values,
        values => {
            let values = values.get_mut(before..).unwrap_or_default().iter_mut();
            values.zip(&nulls).filter(|(_, n)| **n != 0).for_each(|(v, _)| *v = Default::default());
        },
        _texts => ()
    );
    column.nulls.get_or_insert_with(|| vec![0; before]).extend(nulls);
}

/// Appends the selected values, each converted.
fn pick<T: Copy, U>(to: &mut Vec<U>, from: &[T], selection: Selection<'_>, make: impl Fn(T) -> U)
where
    U: Default,
{
    match selection {
        Selection::All(len) => to.extend(from.iter().take(len).map(|v| make(*v))),
        Selection::Rows(rows) => {
            let value = |row: &u32| from.get(*row as usize).map_or_else(U::default, |v| make(*v));
            to.extend(rows.iter().map(value));
        }
    }
}

fn append_plain(values: &mut Values, data: Data<'_>, selection: Selection<'_>) -> bool {
    match (values, data) {
        (Values::U8(to), Data::U8(from)) => pick(to, from, selection, |v| v),
        (Values::U16(to), Data::U16(from)) => pick(to, from, selection, |v| v),
        (Values::U32(to), Data::U32(from)) => pick(to, from, selection, |v| v),
        (Values::U64(to), Data::U64(from)) => pick(to, from, selection, |v| v),
        (Values::I8(to), Data::I8(from)) => pick(to, from, selection, |v| v),
        (Values::I16(to), Data::I16(from)) => pick(to, from, selection, |v| v),
        (Values::I32(to), Data::I32(from)) => pick(to, from, selection, |v| v),
        (Values::I64(to), Data::I64(from)) => pick(to, from, selection, |v| v),
        (Values::I128(to), Data::I128(from)) => pick(to, from, selection, |v| v),
        (Values::F32(to), Data::F32(from)) => pick(to, from, selection, |v| v),
        (Values::F64(to), Data::F64(from)) => pick(to, from, selection, |v| v),
        _ => return false,
    }
    true
}

#[allow(clippy::cast_possible_truncation, reason = "the sums are values of the column's type")]
#[allow(clippy::cast_possible_wrap, reason = "the sums are in two's complement")]
fn append_narrowed(
    values: &mut Values,
    base: u64,
    codes: Codes<'_>,
    selection: Selection<'_>,
) -> bool {
    fn add<U: Default>(
        to: &mut Vec<U>,
        codes: Codes<'_>,
        selection: Selection<'_>,
        make: impl Fn(u64) -> U,
    ) {
        match codes {
            Codes::U8(codes) => pick(to, codes, selection, |code| make(code.into())),
            Codes::U16(codes) => pick(to, codes, selection, |code| make(code.into())),
            Codes::U32(codes) => pick(to, codes, selection, |code| make(code.into())),
        }
    }
    let value = |code: u64| base.wrapping_add(code);
    match values {
        Values::U8(to) => add(to, codes, selection, |code| value(code) as u8),
        Values::U16(to) => add(to, codes, selection, |code| value(code) as u16),
        Values::U32(to) => add(to, codes, selection, |code| value(code) as u32),
        Values::U64(to) => add(to, codes, selection, value),
        Values::I8(to) => add(to, codes, selection, |code| value(code) as i8),
        Values::I16(to) => add(to, codes, selection, |code| value(code) as i16),
        Values::I32(to) => add(to, codes, selection, |code| value(code) as i32),
        Values::I64(to) => add(to, codes, selection, |code| value(code) as i64),
        Values::I128(to) => add(to, codes, selection, |code| value(code).cast_signed().into()),
        _ => return false,
    }
    true
}

/// Appends texts, and nothing for those that are NULL.
fn append_bytes(
    to: &mut VariableValues,
    from: &ColumnSlice<'_>,
    selection: Selection<'_>,
    nulls: Option<&[u8]>,
) -> Result<()> {
    let is_null = |i: usize| nulls.is_some_and(|nulls| nulls.get(i) != Some(&0));
    let each = || (0..selection.len()).filter(|i| !is_null(*i)).map(|i| selection.row(i) as usize);
    let mut reader = BytesReader::new(from);
    let lengths = match from.data {
        Data::Variable { offsets, .. } => each().map(|row| length(offsets, row)).sum::<usize>(),
        Data::Dictionary { codes, dictionary } => {
            each().map(|row| length(dictionary.offsets, codes.get(row) as usize)).sum()
        }
        Data::FixedWidth { width, .. } => width * selection.len(),
        _ => each().map(|row| reader.bytes(row).len()).sum(),
    };
    if u32::try_from(to.heap.len() + lengths).is_err() {
        return Err(Error::out_of_range("a batch of results would pass 4 GiB"));
    }
    to.heap.reserve(lengths);
    to.offsets.reserve(selection.len());
    if let (Selection::All(len), Data::Variable { .. }, None) = (selection, from.data, nulls) {
        append_all(to, from, len);
        return Ok(());
    }
    for i in 0..selection.len() {
        let bytes = if is_null(i) { &[] } else { reader.bytes(selection.row(i) as usize) };
        to.push(bytes);
    }
    Ok(())
}

/// Appends the first `len` texts, which lie one after another.
fn append_all(to: &mut VariableValues, from: &ColumnSlice<'_>, len: usize) {
    let Data::Variable { offsets, start, heap } = from.data else { return };
    let Some(offsets @ [first, ends @ ..]) = offsets.get(..=len) else { return };
    let place = |offset: u32| offset.wrapping_sub(start) as usize;
    let last = offsets.last().copied().unwrap_or(*first);
    let base = to.offsets.last().copied().unwrap_or_default();
    to.heap.extend_from_slice(heap.get(place(*first)..place(last)).unwrap_or_default());
    to.offsets.extend(ends.iter().map(|end| end.wrapping_sub(*first) + base));
}

fn length(offsets: &[u32], at: usize) -> usize {
    match offsets.get(at..at + 2) {
        Some([from, to]) => to.wrapping_sub(*from) as usize,
        _ => 0,
    }
}

/// The rows at some places, the number of a batch and that of a row, in this order.
///
/// # Errors
/// `OutOfRange` when the texts would pass 4 GiB.
pub(crate) fn collect(
    types: &[DataType],
    batches: &[Batch],
    places: &[(u32, u32)],
) -> Result<Batch> {
    let mut columns = Vec::with_capacity(types.len());
    for (i, data_type) in types.iter().copied().enumerate() {
        let sources: Option<Vec<&Column>> = batches.iter().map(|b| b.columns.get(i)).collect();
        let (sources, places) = (sources.unwrap_or_default(), places.iter().map(unpacked));
        columns.push(collect_column(data_type, &sources, places, false)?);
    }
    Ok(Batch { columns })
}

/// One column of the rows at some places, the number of a source and that of a row in it; NULL
/// where a place is in none, which `has_missing` says that some may be.
///
/// # Errors
/// `OutOfRange` when the texts would pass 4 GiB.
pub(crate) fn collect_column(
    data_type: DataType,
    sources: &[&Column],
    places: impl ExactSizeIterator<Item = (usize, usize)> + Clone,
    has_missing: bool,
) -> Result<Column> {
    let mut column = Column::empty(data_type);
    macro_rules! fixed {
        ($($variant:ident)*) => {
            match &mut column.values {
                $(Values::$variant(to) => {
                    let slices = sources.iter().map(|source| match &source.values {
                        Values::$variant(values) => values.as_slice(),
                        _ => &[],
                    });
                    let slices: Vec<_> = slices.collect();
                    let value = |(source, row): (usize, usize)| {
                        let values = slices.get(source).and_then(|values| values.get(row));
                        values.copied().unwrap_or_default()
                    };
                    to.extend(places.clone().map(value));
                })*
                Values::Variable(to) => {
                    to.offsets.reserve(places.len());
                    for (source, row) in places.clone() {
                        let bytes = sources.get(source).and_then(|source| source.bytes(row));
                        if !to.push(bytes.unwrap_or_default()) {
                            return Err(Error::out_of_range("a batch of results would pass 4 GiB"));
                        }
                    }
                }
            }
        };
    }
    fixed!(U8 U16 U32 U64 I8 I16 I32 I64 I128 F32 F64);
    if has_missing || sources.iter().any(|source| source.nulls.is_some()) {
        let mark = |(source, row): (usize, usize)| {
            u8::from(sources.get(source).is_none_or(|source| source.is_null(row)))
        };
        let marks: Vec<u8> = places.map(mark).collect();
        column.nulls = marks.contains(&1).then_some(marks);
    }
    Ok(column)
}

/// A place in 64 bits, as numbers of a batch and of a row in it.
pub(crate) fn unpacked(place: &(u32, u32)) -> (usize, usize) {
    (place.0 as usize, place.1 as usize)
}
