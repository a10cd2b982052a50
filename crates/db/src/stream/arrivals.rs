//! Events in the order in which they arrived, from any place on.

use std::sync::Arc;

use esker_format::{Batch, Room, Schema, Value, ValueRef};
use esker_log::sabotage::Bug;
use esker_query::RowFilter;
use esker_query::model::Expr;
use esker_table::table::ArrivedRow;

use super::{EventId, time_of};
use crate::{Result, Row, SnapshotTable};

/// Events that are tested for a filter at a time.
const CHUNK_ROWS: usize = 256;
/// Bytes of their texts, about: one that has more is alone.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes of the texts of all that are read at once, about.
const READ_BYTES: usize = 1 << 20;
/// Events that are looked at at once, whether they pass the filter or not.
const READ_ROWS: usize = 64 << 10;

/// An event with its id.
pub(crate) type Arrived = (EventId, Row);

/// Reads events with greater row ids than one, and keeps what it knows of the filter.
pub(super) struct ArrivalReader {
    filter: Option<Expr>,
    /// The filter, for one schema.
    bound: Option<(Arc<Schema>, RowFilter)>,
}

/// Some events.
pub(super) struct ReadEvents {
    pub events: Vec<Arrived>,
    /// Everything up to this row id has been read.
    pub through: u64,
    /// No later event is visible yet.
    pub is_end: bool,
}

/// Events that may be read.
pub(super) struct Readable<'s> {
    pub rows: &'s SnapshotTable,
    /// What a later commit has written or removed is not told yet, nor is what arrived after it.
    pub durable: Option<u64>,
}

/// Rows at hand.
#[derive(Default)]
struct Chunk {
    rows: Vec<(u64, Vec<Value>)>,
    bytes: usize,
}

impl Chunk {
    fn push(&mut self, schema: &Schema, arrived: &ArrivedRow<'_>) -> Result<()> {
        let mut values = Vec::with_capacity(schema.fields().len());
        for position in 0..schema.fields().len() {
            let room = Room::default();
            let value = arrived.part.value(position, arrived.row, &room)?;
            // default: what is no text or bytes is counted with the rows
            self.bytes += value.as_bytes().map_or(8, <[u8]>::len);
            values.push(ValueRef::to_owned(value));
        }
        self.rows.push((arrived.row_id, values));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= CHUNK_ROWS || self.bytes >= CHUNK_BYTES
    }
}

impl ArrivalReader {
    /// With a filter on the event alone.
    ///
    /// # Errors
    /// `InvalidInput` when it does not fit the schema, or more than the event decides.
    pub fn new(filter: Option<Expr>, schema: &Arc<Schema>) -> Result<Self> {
        let mut reader = Self { filter, bound: None };
        reader.bind(schema)?;
        Ok(reader)
    }

    fn bind(&mut self, schema: &Arc<Schema>) -> Result<()> {
        let is_bound = self.bound.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, schema));
        if let (Some(filter), false) = (&self.filter, is_bound) {
            self.bound = Some((Arc::clone(schema), RowFilter::new(filter, schema)?));
        }
        Ok(())
    }

    /// Reads up to so many events behind a row id. Where the filter lets few pass, or they are
    /// long, it reads fewer though there are more.
    pub fn read(&mut self, from: &Readable<'_>, after: u64, limit: usize) -> Result<ReadEvents> {
        let schema = Arc::clone(from.rows.schema());
        self.bind(&schema)?;
        let mut arrivals = from.rows.rows_as_of().rows_after_id(after, from.durable);
        let mut read = ReadEvents { events: Vec::new(), through: after, is_end: false };
        let (mut seen, mut bytes) = (0, 0);
        while read.events.len() < limit && seen < READ_ROWS && bytes < READ_BYTES && !read.is_end {
            let mut chunk = Chunk::default();
            // Without a filter each event that is read is returned, so that no more are read.
            let most = if self.filter.is_some() { CHUNK_ROWS } else { limit - read.events.len() };
            while !chunk.is_full() && chunk.rows.len() < most {
                let Some(next) = arrivals.step()? else {
                    read.is_end = true;
                    break;
                };
                chunk.push(&schema, &next)?;
            }
            (seen, bytes) = (seen + chunk.rows.len(), bytes + chunk.bytes);
            self.take(&schema, chunk, limit, &mut read)?;
        }
        Ok(read)
    }

    /// Adds the events of a chunk that pass the filter.
    fn take(
        &self,
        schema: &Arc<Schema>,
        chunk: Chunk,
        limit: usize,
        read: &mut ReadEvents,
    ) -> Result<()> {
        let passing = match &self.bound {
            None => vec![true; chunk.rows.len()],
            Some((_, filter)) => {
                let mut batch = Batch::empty(schema);
                for (_, row) in &chunk.rows {
                    batch.push_row(schema, row)?;
                }
                filter.passing(&batch, &esker_query::Limits::default())?
            }
        };
        if let Some((last, _)) =
            chunk.rows.last().filter(|_| Bug::TailSkipsBeyondLimit.is_planted())
        {
            read.through = *last;
        }
        for ((row_id, values), passes) in chunk.rows.into_iter().zip(passing) {
            if read.events.len() >= limit {
                // The next call reads the events after the last one returned again.
                read.is_end = false;
                return Ok(());
            }
            read.through = read.through.max(row_id);
            if passes {
                let id = EventId::new(time_of(schema, &values)?, row_id);
                read.events.push((id, Row::new(Arc::clone(schema), values)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use esker_format::{DataType, Schema, Value};
    use esker_vfs::sim::{Options as SimOptions, Simulation};

    use crate::Options;

    /// Rows in the order of a key, whose row ids do not rise, in several segments and a group.
    #[test]
    fn rows_arrive_by_row_id_in_whatever_order_they_lie() {
        let machine = Simulation::new(1, SimOptions::default());
        let options = Options::new().environment(machine.environment()).background(false);
        let db = options.open("db").unwrap();
        let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]);
        let table = db.create_table("t", schema.ordered_by_key().build().unwrap()).unwrap();
        for round in 0..3i64 {
            let mut load = table.load().unwrap();
            (0..50).for_each(|n| load.push_row(&[Value::Int((n * 37) % 53 * 3 + round)]).unwrap());
            load.finish().unwrap();
        }
        assert!((200..220).rev().all(|n| table.insert(&[Value::Int(n)]).is_ok()));
        assert!(table.delete(&[Value::Int(210)]).unwrap());
        let snapshot = table.snapshot().unwrap();
        let ids: Vec<u64> = snapshot.rows().unwrap().into_iter().map(|(id, _)| id).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        for after in [0, 1, ids[7], ids[60], ids[149], ids[155], *ids.last().unwrap(), u64::MAX] {
            let mut arrivals = snapshot.rows_as_of().rows_after_id(after, None);
            let mut found = Vec::new();
            while let Some(arrived) = arrivals.step().unwrap() {
                found.push(arrived.row_id);
            }
            let expected: Vec<u64> = ids.iter().copied().filter(|id| *id > after).collect();
            assert_eq!(found, expected, "after {after}");
        }
    }
}
