//! Copying borrowed, encoded rows into an owned column.

use crate::{Column, ColumnSlice, Data, Validity, Values, with_values};

impl Column {
    /// Appends the rows of a slice of the same type.
    ///
    /// Plain, fixed-width and variable data is copied in bulk; other encodings value by value.
    ///
    /// # Errors
    /// `InvalidInput` when the types differ or the column's heap would pass 4 GiB.
    pub fn append(&mut self, slice: &ColumnSlice<'_>) -> crate::Result<()> {
        let before = self.len();
        if !self.append_bulk(slice) {
            for i in 0..slice.len {
                self.push(slice.value(i))?;
            }
            return Ok(());
        }
        let has_nulls = !matches!(slice.validity, Validity::AllValid);
        if has_nulls || self.nulls.is_some() {
            let nulls = self.nulls.get_or_insert_with(Vec::new);
            nulls.resize(before, 0);
            match slice.validity {
                Validity::NullBytes(bytes) => nulls.extend_from_slice(bytes),
                _ => nulls.extend((0..slice.len).map(|i| u8::from(slice.is_null(i)))),
            }
        }
        Ok(())
    }

    /// Appends NULLs.
    pub fn append_nulls(&mut self, rows: usize) {
        // Marks come only with NULLs.
        if rows == 0 {
            return;
        }
        let before = self.len();
        with_values!(
            &mut self.values,
            values => values.resize(before + rows, Default::default()),
            values => {
                // default: without an offset there is no value.
                let end = values.offsets.last().copied().unwrap_or_default();
                values.offsets.resize(before + rows + 1, end);
            }
        );
        let nulls = self.nulls.get_or_insert_with(Vec::new);
        nulls.resize(before, 0);
        nulls.resize(before + rows, 1);
    }

    /// Copies the values of plain data; false (and nothing copied) for other encodings.
    fn append_bulk(&mut self, slice: &ColumnSlice<'_>) -> bool {
        match (&mut self.values, slice.data) {
            (Values::U8(to), Data::U8(from)) => to.extend_from_slice(from),
            (Values::U16(to), Data::U16(from)) => to.extend_from_slice(from),
            (Values::U32(to), Data::U32(from)) => to.extend_from_slice(from),
            (Values::U64(to), Data::U64(from)) => to.extend_from_slice(from),
            (Values::I8(to), Data::I8(from)) => to.extend_from_slice(from),
            (Values::I16(to), Data::I16(from)) => to.extend_from_slice(from),
            (Values::I32(to), Data::I32(from)) => to.extend_from_slice(from),
            (Values::I64(to), Data::I64(from)) => to.extend_from_slice(from),
            (Values::I128(to), Data::I128(from)) => to.extend_from_slice(from),
            (Values::F32(to), Data::F32(from)) => to.extend_from_slice(from),
            (Values::F64(to), Data::F64(from)) => to.extend_from_slice(from),
            (Values::Variable(to), Data::FixedWidth { width, stride, heap }) if width == stride => {
                let Ok(base) = u32::try_from(to.heap.len()) else { return false };
                if u32::try_from(to.heap.len() + heap.len()).is_err() {
                    return false;
                }
                let Ok(step) = u32::try_from(width) else { return false };
                to.heap.extend_from_slice(heap);
                let mut end = base;
                to.offsets.extend((0..slice.len).map(|_| {
                    end += step;
                    end
                }));
            }
            (Values::Variable(to), Data::Variable { offsets, start, heap }) => {
                let ([first, ends @ ..], Some(last)) = (offsets, offsets.last()) else {
                    return false;
                };
                let at = |offset: u32| offset.wrapping_sub(start) as usize;
                let Some(bytes) = heap.get(at(*first)..at(*last)) else { return false };
                let Ok(base) = u32::try_from(to.heap.len()) else { return false };
                if base.checked_add(last - first).is_none() {
                    return false;
                }
                to.heap.extend_from_slice(bytes);
                to.offsets.extend(ends.iter().map(|end| end - first + base));
            }
            _ => return false,
        }
        true
    }

    /// Bytes of memory that the values take.
    #[must_use]
    pub fn byte_count(&self) -> usize {
        with_values!(
            &self.values,
            values => size_of_val(values.as_slice()),
            values => values.heap.len() + 4 * values.offsets.len()
        ) + self.nulls.as_ref().map_or(0, Vec::len) // default: without NULLs there are no marks.
    }

    /// Bytes of memory that the values of some rows take.
    #[must_use]
    pub fn byte_count_of(&self, rows: std::ops::Range<usize>) -> usize {
        debug_assert!(rows.end <= self.len(), "rows {rows:?} of {}", self.len());
        let marks = if self.nulls.is_some() { rows.len() } else { 0 };
        let offset = |values: &crate::VariableValues, row: usize| {
            // default: rows past the end take no memory.
            values.offsets.get(row).map_or(0, |offset| *offset as usize)
        };
        marks
            + with_values!(
                &self.values,
                // default: as above.
                values => size_of_val(values.get(rows).unwrap_or_default()),
                values => {
                    let heap = offset(values, rows.end).saturating_sub(offset(values, rows.start));
                    heap + 4 * rows.len()
                }
            )
    }

    /// Bytes of memory that are set aside for values, those in use included.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        fn of<T>(values: &Vec<T>) -> usize {
            values.capacity() * size_of::<T>()
        }
        with_values!(
            &self.values,
            values => of(values),
            values => of(&values.heap) + of(&values.offsets)
        ) + self.nulls.as_ref().map_or(0, of) // default: without NULLs there are no marks.
    }

    /// The bytes of row `i` of a column of text or bytes.
    #[must_use]
    pub fn bytes(&self, i: usize) -> Option<&[u8]> {
        match &self.values {
            Values::Variable(values) => Some(values.get(i)),
            _ => None,
        }
    }

    /// Empties the column and keeps its memory.
    pub fn clear(&mut self) {
        self.nulls = None;
        with_values!(&mut self.values, values => values.clear(), values => {
            values.heap.clear();
            values.offsets.truncate(1);
        });
    }
}
