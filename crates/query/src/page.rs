//! Answers page by page: each goes on where the one before it ended, whatever was written between.
//!
//! The order of a query is completed by what no two rows share, the row id or the keys of a group.
//! A page reads one row more than it shows, to know whether there is another; a page backward reads
//! the reversed order and turns its rows around. A row whose keys did not change between two pages
//! is on exactly one of them.

use esker_format::{Batch, DataType, Value};

use crate::bind::keyset::Keyset;
use crate::bind::{Program, Projection, Stage, bind_query};
use crate::bound::{Bound, BoundAggregate, OrderKey};
use crate::cursor::Identity;
use crate::model::{Aggregate, RowCount};
use crate::run::{collected, columns};
use crate::{
    Cursor, Error, Options, Query, QueryResult, Result, ResultColumn, Source, Statistics,
    ZONE_ROWS, exec,
};

/// Which page of an answer.
#[derive(Clone, Debug, Default)]
pub struct Paging {
    /// Where it begins; the first page without one.
    pub cursor: Option<Cursor>,
    /// Whether all rows are counted, too.
    pub total: bool,
    /// The table, and the database that it is in: a cursor leads nowhere else.
    pub table: u128,
    /// What cursors name as the snapshot to go on in.
    pub snapshot: Option<u128>,
}

/// A page of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its rows.
    pub result: QueryResult,
    /// Where the next page begins; `None` when there was none.
    pub next: Option<String>,
    /// Where the page before it ends, to be read backward; `None` when there was none.
    pub previous: Option<String>,
    /// How many rows there are on all pages, where that is wanted.
    pub total: Option<u64>,
}

/// Answers a page of a query: as many rows as its limit says.
///
/// # Errors
/// `InvalidQuery` for a query without a limit or with an offset, and for a cursor that is damaged,
/// of another query, or from before a change of the fields; else as [`crate::execute`].
pub fn page(
    query: &Query,
    source: &dyn Source,
    options: &Options,
    paging: &Paging,
) -> Result<Page> {
    if query.offset != RowCount::Number(0) {
        return Err(Error::invalid("OFFSET: a page begins at its cursor, not after some rows"));
    }
    if !query.distinct_on.is_empty() {
        return Err(Error::invalid(
            "DISTINCT ON: a page is of rows or groups; use LIMIT and OFFSET",
        ));
    }
    if query.has_windows() {
        return Err(Error::invalid(
            "a page is of rows or groups, not of window functions over them; use LIMIT and OFFSET",
        ));
    }
    let identity = Identity::new(query, source.schema(), paging.table, &options.inputs)?;
    if let Some(cursor) = &paging.cursor {
        cursor.expect(identity)?;
    }
    let mut program = bind_query(query, source.schema(), &options.inputs)?;
    let wanted = usize::try_from(program.projection.limit.unwrap_or(0)).unwrap_or(usize::MAX);
    if wanted == 0 {
        return Err(Error::invalid("LIMIT: expected how many rows a page has, at least 1"));
    }
    let total = if paging.total { Some(count(&program, source, options)?) } else { None };
    let shown = columns(&program);
    let is_backward = paging.cursor.as_ref().is_some_and(|cursor| cursor.is_backward);
    complete_order(&mut program, source, options)?;
    let projection = &mut program.projection;
    projection.limit = Some((wanted as u64).saturating_add(1));
    projection.outputs.extend(projection.order.iter().map(|key| key.bound.clone()));
    if is_backward {
        for key in &mut projection.order {
            key.descending = !key.descending;
            key.nulls_first = !key.nulls_first;
        }
    }
    if let Some(cursor) = &paging.cursor {
        go_on_after(projection, cursor, identity)?;
    }
    let read = |sink: exec::Sink<'_>| exec::run(&program, source, options, sink);
    let (batches, profile) = collected(options, read)?;
    let types: Vec<_> = program.projection.outputs.iter().map(Bound::data_type).collect();
    let edges = Edges { identity, paging, is_backward, wanted };
    edges.page(shown, &types, batches, total, profile.statistics())
}

/// Makes the order one in which no two rows are equal.
fn complete_order(program: &mut Program, source: &dyn Source, options: &Options) -> Result<()> {
    let last: Vec<Bound> = match program.stages.last() {
        Some(stage) => {
            let keys = stage.keys.iter().enumerate();
            keys.map(|(i, key)| Bound::field(i, key.data_type())).collect()
        }
        None => {
            let position = source.row_id_position().ok_or_else(|| {
                Error::invalid("a page is of the rows or groups of one table, which this is not")
            })?;
            vec![Bound::field(position, DataType::U64)]
        }
    };
    let order = &mut program.projection.order;
    for bound in last {
        if !order.iter().any(|key| key.bound.node == bound.node) {
            let nulls_first = options.inputs.semantics.nulls_first_in(false);
            order.push(OrderKey { bound, descending: false, nulls_first });
        }
    }
    Ok(())
}

fn go_on_after(projection: &mut Projection, cursor: &Cursor, identity: Identity) -> Result<()> {
    let types = projection.order.iter().map(|key| key.bound.data_type());
    let after = Keyset::new(cursor.values(identity, types)?, &projection.order);
    projection.after = Some(after);
    Ok(())
}

/// How many rows there are on all pages.
fn count(program: &Program, source: &dyn Source, options: &Options) -> Result<u64> {
    let mut stages = program.stages.clone();
    let projection = &program.projection;
    let rows = BoundAggregate {
        function: Aggregate::Count,
        operand: None,
        distinct: false,
        data_type: DataType::I64,
    };
    let filter = projection.filter.clone();
    stages.push(Stage { filter, aggregates: vec![rows], ..Stage::default() });
    let projection = Projection::of_fields(&[DataType::I64], None);
    let program = Program { stages, windows: None, projection };
    let (batches, _) = collected(options, |sink| exec::run(&program, source, options, sink))?;
    let counted = batches.first().and_then(|batch| batch.columns.first());
    match counted.map(|column| column.value(0).to_owned()) {
        Some(Value::Int(count)) => Ok(u64::try_from(count).unwrap_or_default()),
        _ => Ok(0),
    }
}

/// What makes cursors of the rows at the edges.
struct Edges<'a> {
    identity: Identity,
    paging: &'a Paging,
    is_backward: bool,
    wanted: usize,
}

impl Edges<'_> {
    /// The page of some rows, which have the keys of their order after what is shown.
    fn page(
        &self,
        shown: Vec<ResultColumn>,
        types: &[DataType],
        batches: Vec<Batch>,
        total: Option<u64>,
        statistics: Statistics,
    ) -> Result<Page> {
        let mut places = Vec::new();
        for (batch, number) in batches.iter().zip(0u32..) {
            let rows = (0u32..).take(batch.len());
            places.extend(rows.map(|row| (number, row)));
        }
        let has_more = places.len() > self.wanted;
        places.truncate(self.wanted);
        if self.is_backward {
            places.reverse();
        }
        let cursor = |place: Option<&(u32, u32)>, is_backward| {
            let (batch, row) = place?;
            let batch = batches.get(*batch as usize)?;
            let keys = batch.columns.iter().zip(types).skip(shown.len());
            let keys: Vec<_> =
                keys.map(|(column, data_type)| (*data_type, column.value(*row as usize))).collect();
            Some(Cursor::new(self.identity, self.paging.snapshot, is_backward, &keys).to_text())
        };
        let is_first = self.paging.cursor.is_none();
        let has_next = if self.is_backward { true } else { has_more };
        let has_previous = if self.is_backward { has_more } else { !is_first };
        let next = if has_next { cursor(places.last(), false) } else { None };
        let previous = if has_previous { cursor(places.first(), true) } else { None };
        let types = types.get(..shown.len()).unwrap_or(types);
        let rows = places.chunks(ZONE_ROWS);
        let batches = rows.map(|places| exec::collect(types, &batches, places));
        let batches = batches.collect::<Result<_>>()?;
        let result = QueryResult { columns: shown, batches, statistics };
        Ok(Page { result, next, previous, total })
    }
}
