//! Keys of a window as numbers of few bits.
//!
//! ```text
//! partition 20 bits | order 24 bits | number of the row 32 bits
//! ```
//!
//! Of each key the least and the greatest value are looked for first; then a value is written as
//! its distance from the one that comes first, in as many bits as the greatest distance takes. What
//! the keys of the partition are does not matter, only which are equal: where they have no fixed
//! width or take many bits, each tuple of them is numbered instead.

use esker_format::order_key::float_key;
use esker_format::{Batch, KeyTable};
use esker_vfs::parallel_map;

use super::columns::vector;
use crate::bind::window::Key;
use crate::evaluate::key_codec::encode;
use crate::evaluate::{Lanes, Vector};
use crate::{Error, ErrorKind, Options, Result};

/// The most bits of all keys: the number of a row takes the rest of 128.
pub(super) const KEY_BITS_MAX: u32 = 96;

/// Partitions whose keys take more bits are numbered where that may make the keys short enough.
const PARTITION_BITS_MAX: u32 = 32;

/// The keys of a window as numbers.
pub(super) struct KeyCodes {
    codes: Vec<Code>,
    /// How many of them are of the partition.
    partition_codes: usize,
}

/// A key as a number.
struct Code {
    read: Read,
    descending: bool,
    nulls_first: bool,
    least: i128,
    greatest: i128,
}

/// Where the values of a key are.
enum Read {
    Column(usize),
    /// One for each row.
    Numbers(Vec<u32>),
}

/// How the keys of a window are compared.
pub(super) enum Keys {
    Codes(KeyCodes),
    /// The number of each row's partition, before the order; none where all rows are one.
    Bytes(Option<Vec<u32>>),
}

impl Keys {
    /// The keys of a window over some rows.
    ///
    /// # Errors
    /// When the query is to end.
    pub(super) fn of(
        batches: &[Batch],
        partition: &[usize],
        order: &[Key<usize>],
        options: &Options,
    ) -> Result<Self> {
        let of_partition =
            partition.iter().map(|column| Code::of_column(batches, *column, options));
        let of_partition = of_partition.collect::<Result<Option<Vec<_>>>>()?;
        let of_order = order.iter().map(|key| {
            let code = Code::of_column(batches, key.value, options)?;
            let Key { descending, nulls_first, .. } = *key;
            Ok(code.map(|code| Code { descending, nulls_first, ..code }))
        });
        let of_order = of_order.collect::<Result<Option<Vec<_>>>>()?;
        let bits = |codes: &[Code]| codes.iter().map(Code::bits).sum::<u32>();
        let order_bits = of_order.as_deref().map_or(KEY_BITS_MAX, bits);
        let codes = match of_partition {
            Some(codes)
                if bits(&codes) <= PARTITION_BITS_MAX
                    || bits(&codes) + order_bits <= KEY_BITS_MAX =>
            {
                codes
            }
            _ => vec![Code::of_numbers(partition_numbers(batches, partition, options)?)],
        };
        let partition_codes = codes.len();
        match of_order {
            Some(of_order) if bits(&codes) + order_bits <= KEY_BITS_MAX => {
                let codes = codes.into_iter().chain(of_order).collect();
                Ok(Self::Codes(KeyCodes { codes, partition_codes }))
            }
            _ => Ok(Self::Bytes(match codes.into_iter().next() {
                None => None,
                Some(Code { read: Read::Numbers(numbers), .. }) => Some(numbers),
                Some(_) => Some(partition_numbers(batches, partition, options)?),
            })),
        }
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        let of_numbers = |numbers: &Vec<u32>| numbers.capacity() * size_of::<u32>();
        match self {
            Self::Bytes(numbers) => numbers.as_ref().map_or(0, of_numbers),
            Self::Codes(KeyCodes { codes, .. }) => {
                let of_code = |code: &Code| match &code.read {
                    Read::Column(_) => 0,
                    Read::Numbers(numbers) => of_numbers(numbers),
                };
                codes.iter().map(of_code).sum()
            }
        }
    }
}

impl KeyCodes {
    /// How many bits the keys of the order take.
    pub(super) fn order_bits(&self) -> u32 {
        self.codes.iter().skip(self.partition_codes).map(Code::bits).sum()
    }

    /// The keys of the rows of a batch, of which the first has some number.
    pub(super) fn of_rows(&self, batch: &Batch, first: usize) -> Result<Vec<u128>> {
        let mut keys = vec![0u128; batch.len()];
        for code in &self.codes {
            code.add(&mut keys, batch, first)?;
        }
        Ok(keys)
    }
}

impl Code {
    fn of_numbers(numbers: Vec<u32>) -> Self {
        // default: without rows there is no number
        let greatest = numbers.iter().max().copied().unwrap_or_default().into();
        let (descending, nulls_first) = (false, true);
        Self { read: Read::Numbers(numbers), descending, nulls_first, least: 0, greatest }
    }

    /// `None` for values of no fixed width.
    fn of_column(batches: &[Batch], column: usize, options: &Options) -> Result<Option<Self>> {
        let is_variable = batches.first().and_then(|batch| batch.columns.get(column));
        if is_variable.is_some_and(|column| column.data_type.is_variable()) {
            return Ok(None);
        }
        let ends = parallel_map(&*options.tasks, batches, |batch| {
            options.expect_time_left()?;
            Ok::<_, Error>(ends(&vector(batch, column)?))
        });
        let mut all: Option<(i128, i128)> = None;
        for ends in ends {
            if let Some((least, greatest)) = ends? {
                let (own_least, own_greatest) = all.unwrap_or((least, greatest));
                all = Some((own_least.min(least), own_greatest.max(greatest)));
            }
        }
        // default: NULLs alone
        let (least, greatest) = all.unwrap_or_default();
        let read = Read::Column(column);
        Ok(Some(Self { read, descending: false, nulls_first: true, least, greatest }))
    }

    /// The greatest code: those of values, and one of NULL.
    fn most(&self) -> u128 {
        self.greatest.abs_diff(self.least).saturating_add(1)
    }

    fn bits(&self) -> u32 {
        u128::BITS - self.most().leading_zeros()
    }

    /// Appends the codes of rows to their keys.
    fn add(&self, keys: &mut [u128], batch: &Batch, first: usize) -> Result<()> {
        let bits = self.bits();
        let null = if self.nulls_first { 0 } else { self.most() };
        let code = |value: i128| {
            let distance = match self.descending {
                false => value.abs_diff(self.least),
                true => self.greatest.abs_diff(value),
            };
            distance + u128::from(self.nulls_first)
        };
        let column = match &self.read {
            Read::Column(column) => *column,
            Read::Numbers(numbers) => {
                let numbers = numbers.get(first..).unwrap_or_default();
                keys.iter_mut().zip(numbers).for_each(|(key, number)| {
                    *key = *key << bits | code((*number).into());
                });
                return Ok(());
            }
        };
        let vector = vector(batch, column)?;
        each(&vector, |i, value| {
            if let Some(key) = keys.get_mut(i) {
                *key = *key << bits | value.map_or(null, code);
            }
        });
        Ok(())
    }
}

/// Calls `visit` with each value as a number in the order of values; `None` for NULL.
fn each(vector: &Vector<'_>, mut visit: impl FnMut(usize, Option<i128>)) {
    let nulls = vector.nulls.as_deref();
    let is_null = |i: usize| nulls.is_some_and(|nulls| nulls.get(i) == Some(&true));
    macro_rules! all {
        ($values:expr, $number:expr) => {
            for (i, value) in $values.iter().enumerate() {
                visit(i, (!is_null(i)).then(|| $number(*value)));
            }
        };
    }
    match &vector.lanes {
        Lanes::Ints(values) => all!(values, i128::from),
        Lanes::Uints(values) => all!(values, i128::from),
        Lanes::Wides(values) => all!(values, |value: i128| value),
        Lanes::Floats(values) => all!(values, float_key),
        Lanes::Bools(values) => all!(values, i128::from),
        Lanes::Bytes(_) => {}
    }
}

/// The least and the greatest value.
fn ends(vector: &Vector<'_>) -> Option<(i128, i128)> {
    let mut ends: Option<(i128, i128)> = None;
    each(vector, |_, value| {
        if let Some(value) = value {
            let (least, greatest) = ends.unwrap_or((value, value));
            ends = Some((least.min(value), greatest.max(value)));
        }
    });
    ends
}

/// The number of each row's partition, in the order in which they are met.
fn partition_numbers(
    batches: &[Batch],
    partition: &[usize],
    options: &Options,
) -> Result<Vec<u32>> {
    let (mut table, mut numbers, mut key) = (KeyTable::default(), Vec::new(), Vec::new());
    let mut held = options.memory().charge();
    for batch in batches {
        options.expect_time_left()?;
        let vectors = partition.iter().map(|column| vector(batch, *column));
        let vectors = vectors.collect::<Result<Vec<_>>>()?;
        for i in 0..batch.len() {
            key.clear();
            vectors.iter().for_each(|vector| encode(&mut key, vector, i));
            numbers.push(table.number(&key));
        }
        held.set(table.bytes() + numbers.capacity() * size_of::<u32>())?;
    }
    Ok(numbers)
}

/// Whether rows can be numbered in 32 bits.
///
/// # Errors
/// `OverBudget` when there are more.
pub(super) fn expect_numbers(rows: usize) -> Result<()> {
    match u32::try_from(rows).is_ok_and(|rows| rows < u32::MAX) {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::OverBudget,
            format!("window functions work on less than 2^32 rows, found {rows}"),
        )),
    }
}
