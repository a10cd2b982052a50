//! Events of a frame as rows of a stream, by column.
//!
//! Values go from the frame into the columns: none is allocated alone, and the names of a row are
//! looked up where they are not those of the row before. What is wrong with one event is that one's
//! alone.

use esker::{Batch, Column, Field, Schema, ValueRef};
use esker_format::batch::fit_value;
use esker_format::{DataType, json};
use esker_wire::pack::Token;
use esker_wire::{Reader, columns, pack, value};

use crate::{Error, Result};

/// Events of a frame.
pub(super) struct EventRows {
    /// Those that are rows of the stream.
    pub batch: Batch,
    /// Which are none, counted from 0, and why.
    pub refused: Vec<(usize, Error)>,
    /// How many there are.
    pub count: usize,
}

/// Reads rows, one after the other.
struct RowReader<'s, 'b> {
    schema: &'s Schema,
    /// Where the values of rows that are arrays go.
    positions: Vec<usize>,
    /// The members of the last row that was a map.
    members: Vec<(&'b str, Option<usize>)>,
    /// The last row that has a value of each field, counted from 1.
    seen: Vec<usize>,
    rows: usize,
    /// What no field is called after, as JSON.
    rest: Vec<u8>,
    held: Vec<u8>,
}

/// Reads an array of rows: maps, or arrays with a value for every field, or for some of them.
///
/// # Errors
/// What is no MessagePack, and a name in `fields` that no field has.
pub(super) fn read_rows(
    reader: &mut Reader<'_>,
    schema: &Schema,
    fields: Option<&[&str]>,
) -> Result<EventRows> {
    let count = reader.array()?;
    let mut rows = RowReader::new(schema, fields)?;
    let (mut batch, mut refused) = (Batch::empty(schema), Vec::new());
    for at in 0..count {
        let start = *reader;
        if let Err(e) = rows.push(reader, &mut batch) {
            let stored = at - refused.len();
            batch.columns.iter_mut().for_each(|column| column.truncate(stored));
            refused.push((at, e));
            *reader = start;
            reader.skip()?;
        }
    }
    Ok(EventRows { batch, refused, count })
}

impl<'s, 'b> RowReader<'s, 'b> {
    fn new(schema: &'s Schema, fields: Option<&[&str]>) -> Result<Self> {
        let all = schema.fields().len();
        let positions: Vec<usize> = match fields {
            None => (0..all).collect(),
            Some(names) => {
                let positions = names.iter().map(|name| Ok(schema.resolve(name)?));
                positions.collect::<Result<_>>()?
            }
        };
        let mut seen = vec![0; all];
        for position in &positions {
            if let Some(count) = seen.get_mut(*position) {
                *count += 1;
            }
        }
        if seen.iter().any(|count| *count > 1) {
            return Err(Error::invalid("fields: a name comes twice"));
        }
        let (members, seen) = (Vec::new(), vec![0; all]);
        let (rest, held) = (Vec::new(), Vec::new());
        Ok(Self { schema, positions, members, seen, rows: 0, rest, held })
    }

    /// Appends the next row.
    fn push(&mut self, reader: &mut Reader<'b>, batch: &mut Batch) -> Result<()> {
        self.rows += 1;
        match reader.token()? {
            Token::Array(found) => {
                let wanted = self.positions.len();
                if found != wanted {
                    let message = format!("expected {wanted} values, found {found}");
                    return Err(Error::invalid(message));
                }
                for at in 0..wanted {
                    let position = self.positions.get(at).copied();
                    self.read_value(reader, position, batch)?;
                }
            }
            Token::Map(found) => self.push_members(reader, found, batch)?,
            other => {
                let found = other.name();
                let message = format!("expected an event as a map or an array, found {found}");
                return Err(Error::invalid(message));
            }
        }
        self.fill(batch)
    }

    fn push_members(
        &mut self,
        reader: &mut Reader<'b>,
        count: usize,
        batch: &mut Batch,
    ) -> Result<()> {
        self.rest.clear();
        for at in 0..count {
            let name = reader.text()?;
            let position = self.position(at, name)?;
            let is_rest = position.is_some() && position == self.schema.rest_position();
            if position.is_none() || is_rest {
                self.keep(reader, name, is_rest)?;
            } else {
                self.read_value(reader, position, batch)?;
            }
        }
        self.push_rest(batch)
    }

    /// Where a member goes; `None` for one that no field is called after, and that is kept with the
    /// rest.
    fn position(&mut self, at: usize, name: &'b str) -> Result<Option<usize>> {
        if let Some((known, position)) = self.members.get(at)
            && *known == name
        {
            return Ok(*position);
        }
        let position = match (self.schema.resolve(name), self.schema.rest_position()) {
            (Ok(position), _) => Some(position),
            (Err(_), Some(_)) => None,
            (Err(e), None) => return Err(e.into()),
        };
        self.members.truncate(at);
        self.members.push((name, position));
        Ok(position)
    }

    /// Keeps a member with the rest. What is called after the field of the rest has members itself.
    fn keep(&mut self, reader: &mut Reader<'b>, name: &str, is_rest: bool) -> Result<()> {
        let start = self.rest.len();
        if start > 0 {
            self.rest.push(b',');
        }
        let before = self.rest.len();
        if !is_rest {
            self.rest.extend_from_slice(&json_name(name)?);
            self.rest.push(b':');
        }
        let value = self.rest.len();
        read_json(reader, &mut self.rest)?;
        if !is_rest {
            return Ok(());
        }
        let text = self.rest.get(value..).unwrap_or_default();
        let inner = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}"));
        match inner.map(<[u8]>::to_vec) {
            Some(inner) if !inner.is_empty() => {
                self.rest.truncate(before);
                self.rest.extend_from_slice(&inner);
            }
            Some(_) => self.rest.truncate(start),
            None if text == b"null" => self.rest.truncate(start),
            None => {
                let own = [json_name(name)?.as_slice(), b":", text].concat();
                self.rest.truncate(before);
                self.rest.extend_from_slice(&own);
            }
        }
        Ok(())
    }

    fn push_rest(&mut self, batch: &mut Batch) -> Result<()> {
        let Some(position) = self.schema.rest_position().filter(|_| !self.rest.is_empty()) else {
            return Ok(());
        };
        let text = [b"{", self.rest.as_slice(), b"}"].concat();
        let text = std::str::from_utf8(&text).map_err(|e| Error::invalid(e.to_string()))?;
        let document = json::parse(text)?;
        self.push_value(position, ValueRef::Json(&document), batch)
    }

    fn read_value(
        &mut self,
        reader: &mut Reader<'b>,
        position: Option<usize>,
        batch: &mut Batch,
    ) -> Result<()> {
        let mut held = std::mem::take(&mut self.held);
        let field = position.and_then(|at| self.schema.fields().get(at));
        let is_nested = field.is_some_and(|field| takes_parts(field.data_type))
            && matches!({ *reader }.token()?, Token::Array(_) | Token::Map(_));
        let pushed = if is_nested {
            let mut text = Vec::new();
            read_json(reader, &mut text)?;
            let text = std::str::from_utf8(&text).map_err(|e| Error::invalid(e.to_string()))?;
            held = json::parse(text)?;
            position.map(|position| self.push_value(position, ValueRef::Json(&held), batch))
        } else {
            let value = value::read(reader, &mut held)?;
            position.map(|position| self.push_value(position, value, batch))
        };
        self.held = held;
        pushed.unwrap_or(Ok(()))
    }

    fn push_value(
        &mut self,
        position: usize,
        value: ValueRef<'_>,
        batch: &mut Batch,
    ) -> Result<()> {
        let field = self.schema.fields().get(position);
        let (Some(field), Some(column)) = (field, batch.columns.get_mut(position)) else {
            return Ok(());
        };
        if let Some(seen) = self.seen.get_mut(position)
            && std::mem::replace(seen, self.rows) == self.rows
        {
            return Err(Error::invalid(format!("the event has field {:?} twice", field.name)));
        }
        push_fitted(field, value, column)
    }

    /// What the row says nothing about gets its default.
    fn fill(&mut self, batch: &mut Batch) -> Result<()> {
        let fields = self.schema.fields().iter().zip(&mut batch.columns);
        for ((field, column), seen) in fields.zip(&self.seen) {
            match *seen == self.rows {
                true => {}
                false if field.default.is_some() => column.push_missing(),
                false => push_fitted(field, ValueRef::Null, column)?,
            }
        }
        Ok(())
    }
}

/// A name as JSON has it.
fn json_name(name: &str) -> Result<Vec<u8>> {
    let (mut packed, mut text) = (Vec::new(), Vec::new());
    pack::text(&mut packed, name);
    esker_import::packed_json(&packed, &mut text)?;
    Ok(text)
}

/// Whether a field takes what has parts.
fn takes_parts(data_type: DataType) -> bool {
    matches!(data_type, DataType::Json | DataType::List(_))
}

fn push_fitted(field: &Field, value: ValueRef<'_>, column: &mut Column) -> Result<()> {
    match field.as_list(value)? {
        Some(list) => column.push(fit_value(field, list.as_ref())?)?,
        None => column.push(fit_value(field, value)?)?,
    }
    Ok(())
}

/// Reads a value with all its parts as JSON.
fn read_json(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<()> {
    esker_import::packed_json(reader.take_value()?, out)?;
    Ok(())
}

/// Reads columns of so many rows.
///
/// # Errors
/// A column that is none, or that no field is called after, and a value that does not fit its
/// field, with its row, from 1.
pub(super) fn read_columns(
    reader: &mut Reader<'_>,
    schema: &Schema,
    count: usize,
) -> Result<EventRows> {
    let found = columns::read(reader, count)?;
    let mut given: Vec<Option<Column>> = vec![None; schema.fields().len()];
    if found.is_empty() {
        return Err(Error::invalid("columns: expected one at least, found none"));
    }
    for columns::NamedColumn { name, column } in found {
        let position = schema.resolve(name)?;
        let Some(field) = schema.fields().get(position) else { continue };
        let fitted =
            fit_column(field, column).map_err(|e| e.at(format_args!("column {name:?}")))?;
        if given.get_mut(position).and_then(|slot| slot.replace(fitted)).is_some() {
            return Err(Error::invalid(format!("column {name:?} comes twice")));
        }
    }
    let fields = schema.fields().iter().zip(given);
    let columns = fields.map(|(field, column)| match column {
        Some(column) => column,
        None => left_out(field, count),
    });
    Ok(EventRows { batch: Batch { columns: columns.collect() }, refused: Vec::new(), count })
}

/// A column that nothing is said of.
fn left_out(field: &Field, count: usize) -> Column {
    let mut column = Column::empty(field.data_type);
    for _ in 0..count {
        match field.default {
            Some(_) => column.push_missing(),
            None => column.push_null(),
        }
    }
    column
}

/// A column as its field has it.
fn fit_column(field: &Field, column: Column) -> Result<Column> {
    if column.data_type == field.data_type {
        return Ok(column);
    }
    let mut fitted = Column::empty(field.data_type);
    for row in 0..column.len() {
        let value = column.value(row);
        let pushed = match value.is_null() {
            // Whether it may be is that event's own.
            true => {
                fitted.push_null();
                Ok(())
            }
            false => push_fitted(field, value, &mut fitted),
        };
        pushed.map_err(|e| e.at(format_args!("row {}", row + 1)))?;
    }
    Ok(fitted)
}
