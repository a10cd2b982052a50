//! Types of calls of functions that make rows.

use esker_format::{DataType, Value};

use super::columns::as_one_column;
use super::typing::{convert, typed};
use crate::bound::Bound;
use crate::model::TableFunction;
use crate::{Error, Result};

/// A call whose operands have the types that it takes.
#[derive(Clone, Debug)]
pub(crate) struct BoundCall {
    pub(crate) function: TableFunction,
    pub(crate) rows: RowKind,
    pub(crate) operands: Vec<Bound>,
    /// The types of its columns, and whether they may be NULL.
    pub(crate) columns: Vec<(DataType, bool)>,
}

/// What the rows of a call are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// Numbers: start, stop and step are of one type, of integers of 64 bits or decimals.
    Numbers(DataType),
    /// Moments: start, stop, and a step, or its months and microseconds.
    Moments,
    /// Parts of a document.
    Parts,
    /// Items of a list.
    Items,
}

impl BoundCall {
    /// A call with operands that have been bound.
    ///
    /// # Errors
    /// `InvalidQuery` naming the function and what it takes.
    pub(crate) fn new(function: TableFunction, operands: Vec<Bound>) -> Result<Self> {
        let (least, most) = function.operand_counts();
        let found = operands.len();
        if !(least..=most).contains(&found) {
            let name = function.name();
            let expected = match least == most {
                true => format!("{least} operand"),
                false => format!("{least} to {most} operands"),
            };
            return Err(Error::invalid(format!("{name}: expected {expected}, found {found}")));
        }
        let bound = match function {
            TableFunction::GenerateSeries | TableFunction::Range => {
                Self::series(function, operands)
            }
            TableFunction::Unnest => Self::items(function, operands),
            _ => Self::parts(function, operands),
        };
        bound.map_err(|e| e.at(function.name()))
    }

    fn items(function: TableFunction, operands: Vec<Bound>) -> Result<Self> {
        let of = |operand: &Bound| match operand.data_type {
            None => Ok(DataType::Text),
            Some(DataType::List(element)) => Ok(element.data_type()),
            Some(found) => Err(Error::invalid(format!("expected a list, found {found}"))),
        };
        let types = operands.iter().map(of).collect::<Result<Vec<_>>>()?;
        let operands = operands.into_iter().zip(&types);
        let typed = |(operand, of): (Bound, &DataType)| Ok(typed(operand, DataType::list(*of)?));
        let operands = operands.map(typed).collect::<Result<_>>()?;
        let columns = types.iter().map(|of| (*of, true)).collect();
        Ok(Self { function, rows: RowKind::Items, operands, columns })
    }

    fn parts(function: TableFunction, operands: Vec<Bound>) -> Result<Self> {
        use DataType::{Json, Text};
        let columns = match function {
            TableFunction::JsonEach => vec![(Text, false), (Json, false)],
            TableFunction::JsonEachText => vec![(Text, false), (Text, true)],
            TableFunction::JsonArrayElements => vec![(Json, false)],
            TableFunction::JsonArrayElementsText => vec![(Text, true)],
            _ => vec![(Text, false)],
        };
        let document = |operand: Bound| match operand.data_type {
            None | Some(Json) => convert(typed(operand, Json), Json),
            Some(Text) if operand.as_written().is_some() => convert(operand, Json),
            Some(found) => {
                Err(Error::invalid(format!("expected json, found {found}: CAST(… AS json)")))
            }
        };
        let operands = operands.into_iter().map(document).collect::<Result<_>>()?;
        Ok(Self { function, rows: RowKind::Parts, operands, columns })
    }

    fn series(function: TableFunction, mut operands: Vec<Bound>) -> Result<Self> {
        if let [start, stop, months, us] = operands.as_slice() {
            let operands = vec![
                moment(start.clone())?,
                moment(stop.clone())?,
                convert(typed(months.clone(), DataType::I64), DataType::I64)?,
                convert(typed(us.clone(), DataType::I64), DataType::I64)?,
            ];
            let columns = vec![(DataType::Timestamp, false)];
            return Ok(Self { function, rows: RowKind::Moments, operands, columns });
        }
        if let [start, stop, step] = operands.as_slice()
            && is_step_of_moments(start, step)
        {
            let step = convert(step.clone(), DataType::Interval)?;
            let operands = vec![moment(start.clone())?, moment(stop.clone())?, step];
            let columns = vec![(DataType::Timestamp, false)];
            return Ok(Self { function, rows: RowKind::Moments, operands, columns });
        }
        if operands.len() == 1 {
            operands.insert(0, Bound::literal(Value::Int(0)));
        }
        if operands.len() == 2 {
            operands.push(Bound::literal(Value::Int(1)));
        }
        for operand in &operands {
            expect_number(operand)?;
        }
        // A series of counts may go down.
        let step = operands.last().filter(|step| step.data_type.is_some_and(is_signed));
        if let (Some(step), 3) = (step.cloned(), operands.len()) {
            let ends = operands.iter().take(2).cloned().collect();
            let (mut ends, common) = as_one_column(ends)?;
            if common.data_type == DataType::U64 {
                ends.push(convert(step, DataType::I64)?);
                let (rows, columns) =
                    (RowKind::Numbers(DataType::U64), vec![(DataType::U64, false)]);
                return Ok(Self { function, rows, operands: ends, columns });
            }
        }
        let (operands, common) = as_one_column(operands)?;
        let to = match common.data_type {
            DataType::U64 => DataType::U64,
            decimal if decimal.is_decimal() => decimal,
            _ => DataType::I64,
        };
        let operands = operands.into_iter().map(|operand| convert(operand, to));
        let operands = operands.collect::<Result<_>>()?;
        let columns = vec![(to, false)];
        Ok(Self { function, rows: RowKind::Numbers(to), operands, columns })
    }
}

/// Whether a step is an interval: one of its type, or a text beside a moment.
fn is_step_of_moments(start: &Bound, step: &Bound) -> bool {
    let is_moment = matches!(start.data_type, Some(DataType::Date | DataType::Timestamp));
    let is_text = step.data_type == Some(DataType::Text) && step.as_written().is_some();
    step.data_type == Some(DataType::Interval) || is_moment && is_text
}

fn is_signed(data_type: DataType) -> bool {
    matches!(data_type, DataType::I8 | DataType::I16 | DataType::I32 | DataType::I64)
}

/// Refuses what is no exact number.
fn expect_number(operand: &Bound) -> Result<()> {
    match operand.data_type {
        None => Ok(()),
        Some(found) if found.is_integer() || found.is_decimal() => Ok(()),
        Some(found @ (DataType::Date | DataType::Timestamp)) => Err(Error::invalid(format!(
            "expected an interval as the step of a series of {found}, like INTERVAL '1 day'"
        ))),
        Some(found) if found.is_float() => Err(Error::invalid(format!(
            "expected integers or decimals, found {found}, whose sums are rounded: cast it to a \
             decimal"
        ))),
        Some(found) => Err(Error::invalid(format!(
            "expected integers, decimals, or timestamps with an interval, found {found}"
        ))),
    }
}

/// The start or stop of moments, as a timestamp.
fn moment(operand: Bound) -> Result<Bound> {
    let is_written = operand.as_written().is_some();
    match operand.data_type {
        None | Some(DataType::Date | DataType::Timestamp) => {
            convert(typed(operand, DataType::Timestamp), DataType::Timestamp)
        }
        Some(DataType::Text) if is_written => convert(operand, DataType::Timestamp),
        Some(found) => Err(Error::invalid(format!(
            "expected timestamps or dates beside an interval, found {found}"
        ))),
    }
}
