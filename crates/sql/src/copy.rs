//! `COPY t FROM 'file'`, `COPY t TO 'file'`, and the same of standard input and output.
//!
//! ```text
//! COPY t (a, b) FROM 'x.csv' (FORMAT csv, HEADER)     file ─► Files::open ─► rows ─► load
//! COPY (SELECT …) TO STDOUT WITH CSV HEADER           answer ─► Files::create_in ─► bytes
//! ```

use std::io::{Read, Write};
use std::ops::ControlFlow;

use esker::{
    Batch, ChangeOptions, Changed, ErrorKind, FileFormat, FileRequest, FileSink, FileTable, Scope,
};
use esker_format::suggest::near_or_all;
use esker_query::model::{Expr, Query};
use esker_query::{AnswerSink, ResultColumn};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::conflict_target::join_paths;
use crate::dialect::{EskerDialect, is_word};
use crate::expression::ParameterNames;
use crate::qualified_name;
use crate::run::Outcome;
use crate::show::end;
use crate::statement::{NESTING_MAX, Statement, syntax};
use crate::{Error, Result, select};

/// Rows between a table and a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyStatement {
    /// Add the rows of a file to a table: `COPY t FROM …`.
    From {
        /// The table.
        table: String,
        /// The fields that the columns of the file are for, in their order; none for those that
        /// it names, or all.
        fields: Vec<String>,
        /// The file.
        file: CopiedFile,
    },
    /// Write the rows of an answer to a file: `COPY … TO …`.
    To {
        /// The query.
        query: Box<Query>,
        /// The file.
        file: CopiedFile,
    },
}

/// What rows are copied from, or to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedFile {
    /// How it is called and written.
    pub file: FileTable,
    /// Whether it is standard input or output, which the program has, and no file.
    pub is_standard: bool,
}

impl CopyStatement {
    /// What rows are copied from, or to.
    #[must_use]
    pub fn file(&self) -> &CopiedFile {
        match self {
            Self::From { file, .. } | Self::To { file, .. } => file,
        }
    }

    /// Whether it names a file of the machine.
    #[must_use]
    pub fn names_file(&self) -> bool {
        !self.file().is_standard
    }
}

/// Reads COPY; nothing when it is another statement.
pub(crate) fn read(
    tokens: &[TokenWithSpan],
    parameters: &ParameterNames,
) -> Result<Option<Statement>> {
    let parser = Parser::new(&EskerDialect).with_recursion_limit(NESTING_MAX);
    let mut parser = parser.with_tokens_with_locations(join_paths(tokens.to_vec()));
    if !is_word(&parser.next_token().token, "COPY") {
        return Ok(None);
    }
    let copy = if parser.consume_token(&Token::LParen) {
        let query = parser.parse_query().map_err(syntax)?;
        parser.expect_token(&Token::RParen).map_err(syntax)?;
        if parser.parse_keyword(Keyword::FROM) {
            return Err(Error::invalid("COPY (…) FROM: expected the name of a table before FROM"));
        }
        parser.expect_keyword(Keyword::TO).map_err(syntax)?;
        let query = Box::new(select::convert(*query, parameters)?);
        CopyStatement::To { query, file: file(&mut parser, Direction::To)? }
    } else {
        let name = parser.parse_object_name(false).map_err(syntax)?;
        let mut fields = Vec::new();
        if parser.consume_token(&Token::LParen) {
            let names = parser.parse_comma_separated(Parser::parse_identifier).map_err(syntax)?;
            fields.extend(names.into_iter().map(|name| name.value));
            parser.expect_token(&Token::RParen).map_err(syntax)?;
        }
        match parser.parse_one_of_keywords(&[Keyword::FROM, Keyword::TO]) {
            Some(Keyword::FROM) => {
                let table = qualified_name::written(&name)?;
                CopyStatement::From { table, fields, file: file(&mut parser, Direction::From)? }
            }
            Some(_) => {
                let mut query = Query::table(qualified_name::read(&name)?.name);
                for field in fields {
                    query.select(Expr::field(field));
                }
                let query = Box::new(query);
                CopyStatement::To { query, file: file(&mut parser, Direction::To)? }
            }
            None => return parser.expected("FROM or TO", parser.peek_token()).map_err(syntax),
        }
    };
    end(&mut parser)?;
    Ok(Some(Statement::Copy(copy)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    From,
    To,
}

/// The file, and how it is written.
fn file(parser: &mut Parser<'_>, direction: Direction) -> Result<CopiedFile> {
    let next = parser.next_token();
    let (standard, other) = match direction {
        Direction::From => ("STDIN", "STDOUT"),
        Direction::To => ("STDOUT", "STDIN"),
    };
    let is = |word: &str| is_word(&next.token, word);
    let (path, is_standard) = match &next.token {
        Token::SingleQuotedString(path) => (path.clone(), false),
        _ if is(standard) => (standard.to_owned(), true),
        _ if is("PROGRAM") => {
            return Err(Error::invalid("COPY: PROGRAM is not supported: no program is run"));
        }
        _ if is(other) => {
            return Err(Error::invalid(format!("COPY: expected {standard}, found {other}")));
        }
        _ => return parser.expected(&format!("'file' or {standard}"), next).map_err(syntax),
    };
    let mut file = options(parser, FileTable::new(path))?;
    if is_standard && file.format.is_none() {
        file.format = Some(FileFormat::Text);
    }
    Ok(CopiedFile { file, is_standard })
}

/// What stands behind the file: in brackets, or as PostgreSQL wrote it before version 9.
fn options(parser: &mut Parser<'_>, mut file: FileTable) -> Result<FileTable> {
    let _ = parser.parse_keyword(Keyword::WITH);
    if parser.consume_token(&Token::LParen) {
        loop {
            let name = word(parser, "the name of an option")?;
            let has_value = !matches!(parser.peek_token_ref().token, Token::Comma | Token::RParen);
            let value = if has_value { Some(word(parser, "a value")?) } else { None };
            file = option(file, &name.to_ascii_lowercase(), value)?;
            if parser.consume_token(&Token::RParen) {
                return Ok(file);
            }
            parser.expect_token(&Token::Comma).map_err(syntax)?;
        }
    }
    while !matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
        let name = word(parser, "an option")?.to_ascii_lowercase();
        file = match name.as_str() {
            "csv" | "text" | "json" | "ndjson" | "binary" => option(file, "format", Some(name))?,
            "header" => option(file, "header", None)?,
            "delimiter" | "delimiters" | "null" | "quote" | "escape" => {
                let _ = parser.parse_keyword(Keyword::AS);
                let value = word(parser, "a text")?;
                let name = if name == "delimiters" { "delimiter" } else { name.as_str() };
                option(file, name, Some(value))?
            }
            _ => {
                let near = near_or_all(&name, "options", KNOWN);
                return Err(Error::invalid(format!("COPY: unknown option {name}{near}")));
            }
        };
    }
    Ok(file)
}

/// The options of COPY.
const KNOWN: [&str; 7] = ["format", "header", "delimiter", "null", "quote", "escape", "encoding"];

/// Puts an option to those of a file.
fn option(file: FileTable, name: &str, value: Option<String>) -> Result<FileTable> {
    let is_default = name == "header" && value.is_none();
    let value = if is_default { Some("true".to_owned()) } else { value };
    let Some(value) = value else {
        return Err(Error::invalid(format!("COPY: {name}: expected a value")));
    };
    match name {
        "format" => {
            let lower = value.to_ascii_lowercase();
            let found = FileFormat::ALL.into_iter().find(|known| known.name() == lower);
            match (found, file.format) {
                (Some(format), None) => Ok(file.format(format)),
                (Some(_), Some(_)) => Err(Error::invalid("COPY: format is said twice")),
                (None, _) => {
                    let known = FileFormat::ALL.map(FileFormat::name).join(", ");
                    Err(Error::invalid(format!("COPY: format {value}: expected one of {known}")))
                }
            }
        }
        // Names are compared anyway.
        "header" if value.eq_ignore_ascii_case("match") => Ok(file.option("header", "true")),
        "encoding" => match value.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
            "utf8" => Ok(file),
            _ => Err(Error::invalid(format!("COPY: encoding {value}: files are UTF-8"))),
        },
        "header" | "delimiter" | "null" | "quote" | "escape" => Ok(file.option(name, value)),
        _ => {
            let near = near_or_all(name, "options", KNOWN);
            Err(Error::invalid(format!("COPY: unknown option {name}{near}")))
        }
    }
}

/// A word, a text or a number.
fn word(parser: &mut Parser<'_>, expected: &str) -> Result<String> {
    let token = parser.next_token();
    match token.token {
        Token::Word(word) => Ok(word.value),
        Token::SingleQuotedString(text) => Ok(text),
        Token::EscapedStringLiteral(text) => Ok(text),
        Token::Number(digits, _) => Ok(digits),
        _ => parser.expected(expected, token).map_err(syntax),
    }
}

/// Standard input and output, where a program gives them.
pub(crate) enum Standard<'s> {
    None,
    In(Box<dyn Read + Send>),
    Out(&'s mut dyn Write),
}

pub(crate) fn run(
    on: &dyn Scope,
    copy: &CopyStatement,
    standard: Standard<'_>,
    options: &ChangeOptions,
) -> esker::Result<Outcome> {
    let files = on.file_access()?;
    let reaches = |file: &CopiedFile| match options.limits.without_files && !file.is_standard {
        true => Err(refused("COPY: this session may reach no files")),
        false => Ok(()),
    };
    match copy {
        CopyStatement::From { table, fields, file } => {
            reaches(file)?;
            let schema = on.table(table)?.schema();
            fields.iter().try_for_each(|name| schema.expect_position(name).map(drop))?;
            let request = FileRequest { columns: fields.clone(), ..FileRequest::rows_of(&schema) };
            let rows = match (file.is_standard, standard) {
                (false, _) => files.open(&file.file, &request)?,
                (true, Standard::In(bytes)) => files.open_from(&file.file, bytes, &request)?,
                (true, _) => return Err(no_standard("STDIN")),
            };
            let rows = on.copy_rows(table, rows, options)?;
            Ok(Outcome::Added(Changed { rows, returning: None }))
        }
        CopyStatement::To { query, file } => {
            reaches(file)?;
            if options.dry_run {
                return Ok(Outcome::Done(format!("would write {}", file.file.path)));
            }
            let rows = match (file.is_standard, standard) {
                (false, _) => {
                    let create = |columns: &[ResultColumn]| files.create(&file.file, columns);
                    write(on, query, options, &mut Writing::new(Box::new(create)))?
                }
                (true, Standard::Out(out)) => {
                    let files = &*files;
                    let create = move |columns: &[ResultColumn]| {
                        let out = out;
                        files.create_in(&file.file, columns, out)
                    };
                    write(on, query, options, &mut Writing::new(Box::new(create)))?
                }
                (true, _) => return Err(no_standard("STDOUT")),
            };
            let what = if rows == 1 { "row" } else { "rows" };
            Ok(Outcome::Done(format!("wrote {rows} {what}")))
        }
    }
}

fn refused(message: impl Into<String>) -> esker::Error {
    esker::Error::new(ErrorKind::InvalidInput, message)
}

fn no_standard(name: &str) -> esker::Error {
    refused(format!("COPY: {name} is of the program that runs statements: expected 'file' here"))
}

/// Writes the answer of a query; returns how many rows.
fn write(
    on: &dyn Scope,
    query: &Query,
    options: &ChangeOptions,
    writing: &mut Writing<'_>,
) -> esker::Result<u64> {
    let answered = on.snapshot_for(query)?.stream_into(query, &options.for_query(), writing);
    if let Some(e) = writing.failed.take() {
        return Err(e);
    }
    answered?;
    match writing.sink.take() {
        Some(sink) => sink.finish()?,
        None => return Err(refused("COPY: the query has no columns")),
    }
    Ok(writing.rows)
}

/// Makes a file of the columns of an answer.
type Create<'w> = dyn FnOnce(&[ResultColumn]) -> esker::Result<Box<dyn FileSink + 'w>> + 'w;

/// An answer on its way to a file.
struct Writing<'w> {
    create: Option<Box<Create<'w>>>,
    sink: Option<Box<dyn FileSink + 'w>>,
    rows: u64,
    failed: Option<esker::Error>,
}

impl<'w> Writing<'w> {
    fn new(create: Box<Create<'w>>) -> Self {
        Self { create: Some(create), sink: None, rows: 0, failed: None }
    }

    fn go_on(&mut self, done: esker::Result<()>) -> ControlFlow<()> {
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                self.failed = Some(e);
                ControlFlow::Break(())
            }
        }
    }
}

impl AnswerSink for Writing<'_> {
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        let Some(create) = self.create.take() else { return ControlFlow::Continue(()) };
        let created = create(columns).map(|sink| self.sink = Some(sink));
        self.go_on(created)
    }

    fn rows(&mut self, batch: Batch) -> Result<ControlFlow<()>> {
        let Some(sink) = &mut self.sink else { return Ok(ControlFlow::Break(())) };
        self.rows += batch.len() as u64;
        let written = sink.write(&batch);
        Ok(self.go_on(written))
    }
}
