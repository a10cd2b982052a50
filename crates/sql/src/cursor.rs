//! `DECLARE name CURSOR FOR …`, `FETCH n FROM name` and `CLOSE name`: the rows of a query, some at
//! a time, within a transaction.

use std::collections::VecDeque;

use esker::{
    Batch, Column, Error, ErrorKind, Limits, QueryResult, Result, ResultRow, Rows, Value, ValueRef,
};
use esker_query::Statistics;
use esker_query::model::Query;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::dialect::{EskerDialect, is_word};
use crate::expression::ParameterNames;
use crate::show::end;
use crate::statement::{self, Statement, syntax};

/// How many a transaction has open: each has a thread.
const CURSORS_MAX: usize = 16;

/// What FETCH may take where a statement has no limit of its own.
const FETCH_BYTES_MAX: usize = esker_query::Options::MEMORY_BUDGET_BYTES;

/// What a value takes beside its text, about.
const VALUE_BYTES: usize = 16;

/// A statement about a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CursorStatement {
    /// Begin a query: `DECLARE name CURSOR FOR SELECT …`.
    Declare {
        /// The name.
        name: String,
        /// The query.
        query: Box<Query>,
    },
    /// Answer its next rows: `FETCH 10 FROM name`.
    Fetch {
        /// The name.
        name: String,
        /// How many; none for all that are left.
        rows: Option<u64>,
    },
    /// End it: `CLOSE name`, or all: `CLOSE ALL`.
    Close(Option<String>),
}

/// Reads one of these statements; nothing when it is another.
pub(crate) fn read(
    tokens: &[TokenWithSpan],
    text: &str,
    parameters: &ParameterNames,
) -> crate::Result<Option<Statement>> {
    let mut parser = Parser::new(&EskerDialect).with_tokens_with_locations(tokens.to_vec());
    let first = parser.next_token().token;
    let is = |word: &str| is_word(&first, word);
    let cursor = if is("DECLARE") {
        declare(tokens, text, parameters)?
    } else if is("FETCH") {
        let rows = count(&mut parser)?;
        let _ = parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::IN]);
        let name = parser.parse_identifier().map_err(syntax)?.value;
        end(&mut parser)?;
        CursorStatement::Fetch { name, rows }
    } else if is("CLOSE") {
        let name = match parser.parse_keyword(Keyword::ALL) {
            true => None,
            false => Some(parser.parse_identifier().map_err(syntax)?.value),
        };
        end(&mut parser)?;
        CursorStatement::Close(name)
    } else {
        return Ok(None);
    };
    Ok(Some(Statement::Cursor(cursor)))
}

/// What stands behind DECLARE.
fn declare(
    tokens: &[TokenWithSpan],
    text: &str,
    parameters: &ParameterNames,
) -> crate::Result<CursorStatement> {
    let is_for = |token: &TokenWithSpan| is_word(&token.token, "FOR");
    let at = tokens.iter().position(is_for).unwrap_or(tokens.len()); // default: there is none
    let (head, rest) = tokens.split_at(at);
    let mut parser = Parser::new(&EskerDialect).with_tokens_with_locations(head.to_vec());
    parser.advance_token();
    let name = parser.parse_identifier().map_err(syntax)?.value;
    loop {
        let next = parser.next_token();
        let is = |word: &str| is_word(&next.token, word);
        if is("CURSOR") {
            break;
        }
        let only_forward = is("NO") && parser.parse_keyword(Keyword::SCROLL);
        if !only_forward && !is("INSENSITIVE") && !is("ASENSITIVE") {
            return parser.expected("CURSOR: it only goes forward", next).map_err(syntax);
        }
    }
    let _ = parser.parse_keywords(&[Keyword::WITHOUT, Keyword::HOLD]);
    if parser.parse_keywords(&[Keyword::WITH, Keyword::HOLD]) {
        let message = "WITH HOLD: a cursor ends with its transaction here";
        return Err(crate::Error::invalid(message));
    }
    let Some((_, rest)) = rest.split_first().filter(|_| end(&mut parser).is_ok()) else {
        return parser.expected("FOR and a query", parser.peek_token()).map_err(syntax);
    };
    match statement::read(rest.to_vec(), text, parameters)? {
        Statement::Query(query) => Ok(CursorStatement::Declare { name, query: Box::new(query) }),
        _ => Err(crate::Error::invalid("DECLARE: expected a SELECT that only reads behind FOR")),
    }
}

/// How many rows FETCH is for.
fn count(parser: &mut Parser<'_>) -> crate::Result<Option<u64>> {
    let _ = parser.parse_keyword(Keyword::FORWARD);
    let next = parser.peek_token_ref();
    match &next.token {
        Token::Number(digits, _) => {
            let rows = digits.parse().map_err(|_| {
                crate::Error::invalid(format!("FETCH: expected a number of rows, found {digits}"))
            })?;
            parser.advance_token();
            Ok(Some(rows))
        }
        Token::Minus => Err(backward()),
        token if is_word(token, "ALL") => {
            parser.advance_token();
            Ok(None)
        }
        token if is_word(token, "NEXT") => {
            parser.advance_token();
            Ok(Some(1))
        }
        token => {
            let back = ["PRIOR", "BACKWARD", "FIRST", "LAST", "ABSOLUTE", "RELATIVE"];
            match back.into_iter().any(|word| is_word(token, word)) {
                true => Err(backward()),
                false => Ok(Some(1)),
            }
        }
    }
}

fn backward() -> crate::Error {
    crate::Error::invalid("FETCH: a cursor only goes forward: expected NEXT, ALL or a number")
}

/// What a cursor is refused with where there is no transaction.
pub(crate) fn inside_only() -> Error {
    let message = "a cursor ends with its transaction: expected BEGIN before";
    Error::new(ErrorKind::InvalidInput, message)
}

/// The cursors of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    open: Vec<Open>,
    /// How many the transaction has opened.
    opened: usize,
}

#[derive(Debug)]
struct Open {
    name: String,
    rows: Rows,
    /// Rows that were taken and not answered, which come first.
    ahead: VecDeque<ResultRow>,
    /// Which of all cursors of the transaction it is.
    number: usize,
}

impl Open {
    /// So many rows at the most. The inner error leaves it where it is.
    fn take(&mut self, rows: u64, bytes_max: usize) -> Result<Result<QueryResult>> {
        let columns = self.rows.columns().to_vec();
        let (mut taken, mut bytes, mut left) = (VecDeque::new(), 0usize, rows);
        while left > 0 {
            let Some(row) = self.ahead.pop_front().map(Ok).or_else(|| self.rows.next()) else {
                break;
            };
            let row = row?;
            let long =
                row.values().iter().filter_map(|value| value.as_ref().as_bytes().map(<[u8]>::len));
            bytes += VALUE_BYTES * columns.len() + long.sum::<usize>();
            taken.push_back(row);
            if bytes > bytes_max {
                taken.append(&mut self.ahead);
                self.ahead = taken;
                return Ok(Err(Error::new(
                    ErrorKind::OverBudget,
                    format!(
                        "FETCH: the rows take more than {bytes_max} bytes: fetch fewer; the \
                         cursor is where it was"
                    ),
                )));
            }
            left -= 1;
        }
        let empty = || columns.iter().map(|column| Column::empty(column.data_type)).collect();
        let mut batch = Batch { columns: empty() };
        for row in &taken {
            // default: a row has a value for each column
            let values =
                row.values().iter().map(Value::as_ref).chain(std::iter::repeat(ValueRef::Null));
            batch.columns.iter_mut().zip(values).try_for_each(|(to, value)| to.push(value))?;
        }
        let batches = if batch.is_empty() { Vec::new() } else { vec![batch] };
        Ok(Ok(QueryResult { columns, batches, statistics: Statistics::default() }))
    }
}

impl Cursors {
    fn place(&self, name: &str) -> Option<usize> {
        self.open.iter().position(|open| open.name.eq_ignore_ascii_case(name))
    }

    /// Refuses a name that is taken, and one too many.
    pub(crate) fn expect_room(&self, name: &str) -> Result<()> {
        if self.place(name).is_some() {
            let message = format!("cursor {name:?} exists already: CLOSE it first");
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        if self.open.len() >= CURSORS_MAX {
            let message = format!("a transaction has at most {CURSORS_MAX} cursors: CLOSE some");
            return Err(Error::new(ErrorKind::OverBudget, message));
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, name: &str, rows: Rows) {
        let (name, ahead, number) = (name.to_owned(), VecDeque::new(), self.opened);
        self.open.push(Open { name, rows, ahead, number });
        self.opened += 1;
    }

    /// How many were opened so far.
    pub(crate) fn opened(&self) -> usize {
        self.opened
    }

    /// Closes those that were opened behind so many. What was closed since stays closed, and what
    /// was answered since is not answered again.
    pub(crate) fn close_later(&mut self, opened: usize) {
        self.open.retain(|open| open.number < opened);
    }

    /// The next rows of one, within the limits of a statement. Where they are too large, it stays
    /// where it is; where the query fails or takes too long, it is closed.
    pub(crate) fn fetch(
        &mut self,
        name: &str,
        rows: Option<u64>,
        limits: &Limits,
    ) -> Result<QueryResult> {
        let at = self.place(name).ok_or_else(|| self.unknown(name))?;
        let Some(open) = self.open.get_mut(at) else { return Err(self.unknown(name)) };
        // default: what FETCH may take where a statement has no limit of its own
        let bytes_max = limits.memory_bytes.unwrap_or(FETCH_BYTES_MAX);
        open.rows.wait_at_most(limits.timeout);
        match open.take(rows.unwrap_or(u64::MAX), bytes_max) {
            Ok(answer) => answer,
            Err(e) => {
                self.open.remove(at);
                Err(Error::new(e.kind(), format!("FETCH: {e}; cursor {name:?} is closed")))
            }
        }
    }

    /// Closes one, or all.
    pub(crate) fn close(&mut self, name: Option<&str>) -> Result<()> {
        let Some(name) = name else {
            self.open.clear();
            return Ok(());
        };
        let at = self.place(name).ok_or_else(|| self.unknown(name))?;
        self.open.remove(at);
        Ok(())
    }

    fn unknown(&self, name: &str) -> Error {
        let near = match self.open.is_empty() {
            true => "; there is none: DECLARE opens one".to_owned(),
            false => {
                let names = self.open.iter().map(|open| open.name.as_str());
                esker_format::suggest::near_or_all(name, "cursors", names)
            }
        };
        Error::new(ErrorKind::NotFound, format!("no cursor {name:?}{near}"))
    }
}
