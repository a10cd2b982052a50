//! One column of an open group: append-only, readable while it grows.

use std::sync::{Arc, OnceLock};

use esker_arena::Category;
use esker_arena::{AppendReader, AppendVec, Appender, Arena, ByteHeap, ByteReader, ByteWriter};
use esker_format::column::Heap;
use esker_format::value_file::HeapWord;
use esker_format::{
    Column, ColumnSlice, Data, DataType, Validity, Value, ValueRef, ValueReference, Values,
    with_article,
};

use crate::Result;
use crate::value_file::{FileList, StoredValue};

/// Bytes that a long value takes in a group: its word and its reference.
const LONG_COST: u64 = 40;

/// The heap of a column of text or bytes, and where its long values lie.
#[derive(Clone)]
pub struct ColumnHeap {
    near: ByteReader,
    /// The references of long values, once there is one.
    long: Arc<OnceLock<AppendReader<[u64; 4]>>>,
    files: Arc<FileList>,
}

impl ColumnHeap {
    /// Where a long value lies.
    fn reference(&self, index: u64) -> Option<ValueReference> {
        let words = self.long.get()?.get(usize::try_from(index).ok()?)?;
        ValueReference::from_words(words).ok()
    }

    /// Verifies the long values among some.
    fn ensure(&self, words: &[u64]) -> Result<()> {
        if self.long.get().is_none() {
            return Ok(());
        }
        for word in words {
            if let HeapWord::Long { index } = HeapWord::of(*word) {
                let missing = || crate::Error::corrupt(format!("long value {index} of a group"));
                let reference = self.reference(index).ok_or_else(missing)?;
                self.files.get(reference.file).ok_or_else(missing)?.ensure(&reference)?;
            }
        }
        Ok(())
    }
}

impl Heap for ColumnHeap {
    fn bytes(&self, word: u64) -> &[u8] {
        let HeapWord::Long { index } = HeapWord::of(word) else { return self.near.bytes(word) };
        let Some(reference) = self.reference(index) else { return &[] };
        // default: what `ensure` refuses is empty, since a heap has no errors
        self.files.get(reference.file).map_or(&[], |file| file.bytes(&reference))
    }

    fn window(&self, word: u64) -> Option<(u64, &[u8])> {
        self.near.window(word)
    }
}

/// The writing end of a [`ColumnHeap`].
pub struct ColumnHeapWriter {
    near: ByteWriter,
    arena: Arc<Arena>,
    long: Option<Appender<[u64; 4]>>,
    long_count: u64,
    reader: ColumnHeap,
}

impl ColumnHeapWriter {
    fn create(arena: &Arc<Arena>, files: &Arc<FileList>) -> Result<(Self, ColumnHeap)> {
        let (near, near_reader) = ByteHeap::new(arena, Category::Group)?;
        let (long, files) = (Arc::default(), Arc::clone(files));
        let reader = ColumnHeap { near: near_reader, long, files };
        let arena = Arc::clone(arena);
        let writer = Self { near, arena, long: None, long_count: 0, reader: reader.clone() };
        Ok((writer, reader))
    }

    fn push(&mut self, bytes: &[u8]) -> Result<u64> {
        Ok(self.near.push(bytes)?)
    }

    /// Adds a value that lies in a value file.
    fn push_long(&mut self, value: &StoredValue) -> Result<u64> {
        self.reader.files.add(&value.file);
        if self.long.is_none() {
            let (writer, reader) = AppendVec::new(&self.arena, Category::Group)?;
            let _ = self.reader.long.set(reader);
            self.long = Some(writer);
        }
        if let Some(long) = &mut self.long {
            long.push(value.reference.words())?;
        }
        let index = self.long_count;
        self.long_count += 1;
        Ok(HeapWord::Long { index }.word())
    }
}

macro_rules! storage {
    ($($variant:ident $type:ty),*) => {
        /// The values of a column, by how they are stored.
        enum Storage {
            $($variant(AppendReader<$type>),)*
            Variable(AppendReader<u64>, ColumnHeap),
        }

        /// The writing end of [`Storage`].
        enum StorageWriter {
            $($variant(Appender<$type>),)*
            Variable(Appender<u64>, ColumnHeapWriter),
        }

        fn create(
            arena: &Arc<Arena>,
            data_type: DataType,
            files: &Arc<FileList>,
        ) -> Result<(StorageWriter, Storage)> {
            Ok(match Values::empty(data_type) {
                $(Values::$variant(_) => {
                    let (writer, reader) = AppendVec::new(arena, Category::Group)?;
                    (StorageWriter::$variant(writer), Storage::$variant(reader))
                })*
                Values::Variable(_) => {
                    let (writer, reader) = AppendVec::new(arena, Category::Group)?;
                    let (heap_writer, heap) = ColumnHeapWriter::create(arena, files)?;
                    (StorageWriter::Variable(writer, heap_writer), Storage::Variable(reader, heap))
                }
            })
        }

        impl Storage {
            fn slice(&self, start: usize, end: usize) -> Data<'_> {
                match self {
                    $(Self::$variant(values) => Data::$variant(values.slice(start, end)),)*
                    Self::Variable(references, heap) => {
                        Data::Scattered { references: references.slice(start, end), heap }
                    }
                }
            }

            fn chunk_end(&self, row: usize) -> usize {
                match self {
                    $(Self::$variant(values) => values.chunk_end(row),)*
                    Self::Variable(references, _) => references.chunk_end(row),
                }
            }
        }

        impl StorageWriter {
            /// Appends all values of a column, some of which, by rising row, lie in value files;
            /// returns the bytes they take.
            fn append_column(
                &mut self,
                column: &Values,
                long: &[(usize, StoredValue)],
            ) -> Result<u64> {
                match (self, column) {
                    $((Self::$variant(to), Values::$variant(from)) => {
                        to.append(from)?;
                        Ok(size_of_val(from.as_slice()) as u64)
                    })*
                    (Self::Variable(to, heap), Values::Variable(from)) => {
                        let mut references = Vec::with_capacity(from.len());
                        let (mut rest, mut bytes) = (long.iter().peekable(), 0);
                        for i in 0..from.len() {
                            let (word, more) = match rest.next_if(|(row, _)| *row == i) {
                                Some((_, value)) => (heap.push_long(value)?, LONG_COST),
                                None => (heap.push(from.get(i))?, from.get(i).len() as u64 + 8),
                            };
                            references.push(word);
                            bytes += more;
                        }
                        to.append(&references)?;
                        Ok(bytes)
                    }
                    _ => Err(crate::Error::new(
                        crate::ErrorKind::InvalidInput,
                        "the column is stored as another type",
                    )),
                }
            }
        }
    };
}

storage! {
    U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64, I128 i128, F32 f32, F64 f64
}

/// The reading end of a column.
pub struct GroupColumn {
    data_type: DataType,
    storage: Storage,
    nulls: Option<AppendReader<u8>>,
}

/// The writing end of a column.
pub struct GroupColumnWriter {
    storage: StorageWriter,
    nulls: Option<Appender<u8>>,
}

impl GroupColumn {
    /// A column without rows, and its writer.
    pub(super) fn create(
        arena: &Arc<Arena>,
        data_type: DataType,
        nullable: bool,
        files: &Arc<FileList>,
    ) -> Result<(GroupColumnWriter, Self)> {
        let (writer, storage) = create(arena, data_type, files)?;
        let (null_writer, nulls) = if nullable {
            let (writer, reader) = AppendVec::new(arena, Category::Group)?;
            (Some(writer), Some(reader))
        } else {
            (None, None)
        };
        let writer = GroupColumnWriter { storage: writer, nulls: null_writer };
        Ok((writer, Self { data_type, storage, nulls }))
    }

    /// As what its values are stored.
    pub(super) fn data_type(&self) -> DataType {
        self.data_type
    }

    /// Verifies the long values of some rows.
    ///
    /// # Errors
    /// `Corrupt` naming the value file, or what the machine says.
    pub fn ensure(&self, start: usize, end: usize) -> Result<()> {
        match &self.storage {
            Storage::Variable(words, heap) => heap.ensure(words.slice(start, end)),
            _ => Ok(()),
        }
    }

    /// The value of a row as the type of the column, unless it is long.
    #[inline]
    pub fn in_place_value(&self, data_type: DataType, row: usize) -> Option<ValueRef<'_>> {
        if self.data_type != data_type {
            return None;
        }
        if let Some(nulls) = &self.nulls
            && nulls.get(row)? != 0
        {
            return Some(ValueRef::Null);
        }
        let Storage::Variable(words, heap) = &self.storage else {
            let (validity, data) = (Validity::AllValid, self.storage.slice(row, row + 1));
            return Some(ColumnSlice { data_type, len: 1, validity, data }.value(0));
        };
        let word = words.get(row)?;
        let is_near = matches!(HeapWord::of(word), HeapWord::Near { .. });
        is_near.then(|| ValueRef::from_bytes(data_type, heap.near.bytes(word)))
    }

    /// The word of a row in a column of bytes that cannot be NULL, where it names bytes of the
    /// heap.
    #[inline]
    pub fn in_place_word(&self, data_type: DataType, row: usize) -> Option<u64> {
        let Storage::Variable(words, _) = &self.storage else { return None };
        if self.nulls.is_some() || self.data_type != data_type {
            return None;
        }
        let word = words.get(row)?;
        matches!(HeapWord::of(word), HeapWord::Near { .. }).then_some(word)
    }

    /// The bytes that a word of this column names.
    #[inline]
    pub fn word_bytes(&self, word: u64) -> &[u8] {
        match &self.storage {
            Storage::Variable(_, heap) => heap.near.bytes(word),
            _ => &[],
        }
    }

    /// Has some row a long value?
    #[must_use]
    pub fn has_long(&self) -> bool {
        matches!(&self.storage, Storage::Variable(_, heap) if heap.long.get().is_some())
    }

    /// Where the value of a row lies, when it is long.
    #[must_use]
    pub fn long_value(&self, row: usize) -> Option<ValueReference> {
        let Storage::Variable(words, heap) = &self.storage else { return None };
        heap.long.get()?;
        match HeapWord::of(words.get(row)?) {
            HeapWord::Long { index } => heap.reference(index),
            HeapWord::Near { .. } => None,
        }
    }

    /// The rows from `start` up to `end`, which lie in one chunk and are published. Their long
    /// values have been verified, where somebody looks at them.
    #[must_use]
    pub fn slice(&self, start: usize, end: usize) -> ColumnSlice<'_> {
        let data = self.storage.slice(start, end);
        let validity = match &self.nulls {
            None => Validity::AllValid,
            Some(nulls) => Validity::NullBytes(nulls.slice(start, end)),
        };
        debug_assert!(self.chunk_end(start) >= end, "rows {start}..{end} straddle a chunk");
        ColumnSlice { data_type: self.data_type, len: end - start, validity, data }
    }

    /// The end of the chunk that holds `row`.
    #[must_use]
    pub fn chunk_end(&self, row: usize) -> usize {
        self.storage.chunk_end(row)
    }
}

impl GroupColumnWriter {
    /// Appends a whole column of the same type, some of whose values, by rising row, lie in value
    /// files; returns the bytes it takes.
    pub(super) fn append_column(
        &mut self,
        column: &Column,
        long: &[(usize, StoredValue)],
    ) -> Result<u64> {
        let rows = column.len();
        let bytes = self.storage.append_column(&column.values, long)?;
        if let Some(nulls) = &mut self.nulls {
            match &column.nulls {
                Some(marks) => nulls.append(marks)?,
                None => nulls.append(&vec![0; rows])?,
            }
        }
        Ok(bytes)
    }

    /// Appends a value that lies in a value file; returns the bytes it takes.
    pub(super) fn push_long(&mut self, value: &StoredValue) -> Result<u64> {
        let StorageWriter::Variable(to, heap) = &mut self.storage else {
            return Err(crate::Error::corrupt("a long value in a column of numbers"));
        };
        to.push(heap.push_long(value)?)?;
        if let Some(nulls) = &mut self.nulls {
            nulls.push(0)?;
        }
        Ok(LONG_COST)
    }

    /// Appends one value that has the column's type; returns the bytes it takes.
    #[allow(clippy::cast_possible_truncation, reason = "coerce has checked the range")]
    pub(super) fn push(&mut self, value: &Value) -> Result<u64> {
        use StorageWriter as W;
        let bytes = match (&mut self.storage, value) {
            (W::U8(to), Value::Bool(v)) => one(to, u8::from(*v)),
            (W::U8(to), Value::Uint(v)) => one(to, *v as u8),
            (W::U16(to), Value::Uint(v)) => one(to, *v as u16),
            (W::U32(to), Value::Uint(v)) => one(to, *v as u32),
            (W::U64(to), Value::Uint(v)) => one(to, *v),
            (W::I8(to), Value::Int(v)) => one(to, *v as i8),
            (W::I16(to), Value::Int(v)) => one(to, *v as i16),
            (W::I32(to), Value::Int(v)) => one(to, *v as i32),
            (W::I32(to), Value::Date(v)) => one(to, *v),
            (W::I64(to), Value::Int(v) | Value::Timestamp(v) | Value::Time(v)) => one(to, *v),
            (W::I64(to), Value::Decimal(v)) => one(to, v.mantissa() as i64),
            (W::I128(to), Value::Decimal(v)) => one(to, v.mantissa()),
            (W::U32(to), Value::Ipv4(v)) => one(to, *v),
            (W::Variable(to, heap), Value::Uuid(v) | Value::Ipv6(v)) => variable(to, heap, v),
            (W::Variable(to, heap), Value::Interval(v)) => variable(to, heap, v.stored()),
            (W::F32(to), Value::Float32(v)) => one(to, *v),
            (W::F64(to), Value::Float(v)) => one(to, *v),
            (W::Variable(to, heap), Value::Text(v)) => variable(to, heap, v.as_bytes()),
            (
                W::Variable(to, heap),
                Value::Bytes(v) | Value::Enum(v) | Value::Json(v) | Value::List(v),
            ) => variable(to, heap, v),
            (storage, Value::Null) if self.nulls.is_some() => null(storage),
            (_, other) => {
                let kind = with_article(other.as_ref().kind_name());
                let message = format!("{kind} does not fit the column's storage");
                Err(crate::Error::new(crate::ErrorKind::InvalidInput, message))
            }
        }?;
        if let Some(nulls) = &mut self.nulls {
            nulls.push(u8::from(value.is_null()))?;
        }
        Ok(bytes)
    }
}

fn one<T: bytemuck::Pod>(to: &mut Appender<T>, value: T) -> Result<u64> {
    to.push(value)?;
    Ok(size_of::<T>() as u64)
}

fn variable(to: &mut Appender<u64>, heap: &mut ColumnHeapWriter, bytes: &[u8]) -> Result<u64> {
    let reference = heap.push(bytes)?;
    to.push(reference)?;
    Ok(bytes.len() as u64 + 8)
}

fn null(storage: &mut StorageWriter) -> Result<u64> {
    use StorageWriter as W;
    match storage {
        W::U8(to) => one(to, 0),
        W::U16(to) => one(to, 0),
        W::U32(to) => one(to, 0),
        W::U64(to) => one(to, 0),
        W::I8(to) => one(to, 0),
        W::I16(to) => one(to, 0),
        W::I32(to) => one(to, 0),
        W::I64(to) => one(to, 0),
        W::I128(to) => one(to, 0),
        W::F32(to) => one(to, 0.0),
        W::F64(to) => one(to, 0.0),
        W::Variable(to, heap) => variable(to, heap, &[]),
    }
}
