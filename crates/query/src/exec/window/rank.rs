//! Places of rows within their partitions.

use std::ops::Range;

use esker_format::{Column, DataType, Values};

use super::arguments::Arguments;
use super::arrangement::Chunk;
use crate::bind::window::{Argument, Computes};
use crate::{Error, Result};

/// The values of a function that counts rows.
///
/// # Errors
/// `OutOfRange` for a number of parts below 1; when the query is to end.
pub(super) fn column(chunk: &Chunk<'_>, function: &Computes<usize>) -> Result<Column> {
    match function {
        Computes::PercentRank => shares(chunk, percent_ranks),
        Computes::CumeDist => shares(chunk, cumulated),
        Computes::Ntile(parts) => ntiles(chunk, parts),
        Computes::Rank => numbers(chunk, |chunk, partition, into| {
            let (start, mut rank) = (partition.start, 1);
            for row in partition {
                if chunk.begins_peers(row) {
                    rank = number(row - start + 1);
                }
                into.push(rank);
            }
        }),
        Computes::DenseRank => numbers(chunk, |chunk, partition, into| {
            let mut rank = 0;
            for row in partition {
                rank += i64::from(chunk.begins_peers(row));
                into.push(rank);
            }
        }),
        _ => numbers(chunk, |_, partition, into| into.extend((1i64..).take(partition.len()))),
    }
}

/// Chunks have less than 2^32 rows.
fn number(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

fn numbers(
    chunk: &Chunk<'_>,
    add: impl Fn(&Chunk<'_>, Range<usize>, &mut Vec<i64>),
) -> Result<Column> {
    let mut values = Vec::with_capacity(chunk.len());
    for partition in chunk.partitions() {
        chunk.meter.work(partition.len())?;
        add(chunk, partition, &mut values);
    }
    Ok(Column { data_type: DataType::I64, values: Values::I64(values), nulls: None })
}

fn shares(
    chunk: &Chunk<'_>,
    add: impl Fn(&Chunk<'_>, Range<usize>, &mut Vec<f64>),
) -> Result<Column> {
    let mut values = Vec::with_capacity(chunk.len());
    for partition in chunk.partitions() {
        chunk.meter.work(partition.len())?;
        add(chunk, partition, &mut values);
    }
    Ok(Column { data_type: DataType::F64, values: Values::F64(values), nulls: None })
}

fn percent_ranks(chunk: &Chunk<'_>, partition: Range<usize>, into: &mut Vec<f64>) {
    let others = partition.len() - 1;
    for peers in chunk.peers(partition.clone()) {
        let before = peers.start - partition.start;
        let share = if others == 0 { 0.0 } else { before as f64 / others as f64 };
        into.extend(std::iter::repeat_n(share, peers.len()));
    }
}

fn cumulated(chunk: &Chunk<'_>, partition: Range<usize>, into: &mut Vec<f64>) {
    for peers in chunk.peers(partition.clone()) {
        let share = (peers.end - partition.start) as f64 / partition.len() as f64;
        into.extend(std::iter::repeat_n(share, peers.len()));
    }
}

/// Parts of which the first are one row longer where they cannot be equal; how many there are, the
/// first row of a partition says.
fn ntiles(chunk: &Chunk<'_>, parts: &Argument<usize>) -> Result<Column> {
    let parts = Arguments::of(chunk, parts)?;
    let mut column = Column::empty(DataType::I64);
    for partition in chunk.partitions() {
        chunk.meter.work(partition.len())?;
        let Some(parts) = parts.get(partition.start) else {
            column.append_nulls(partition.len());
            continue;
        };
        // More parts than rows are as good as one for each.
        let least = u64::try_from(parts).ok().filter(|parts| *parts > 0).ok_or_else(|| {
            Error::out_of_range(format!("ntile: expected a number of parts from 1, found {parts}"))
        })?;
        let parts = usize::try_from(least).unwrap_or(usize::MAX).min(partition.len());
        let (size, longer) = (partition.len() / parts, partition.len() % parts);
        for part in 0..parts {
            let rows = size + usize::from(part < longer);
            for _ in 0..rows {
                column.push(esker_format::ValueRef::Int(number(part + 1)))?;
            }
        }
    }
    Ok(column)
}
