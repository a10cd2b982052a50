//! Statements: one of them, and short enough to be safe.

use esker::KeptFor;
use esker_format::Schema;
use esker_format::schema::{Alteration, NewIndex};
use esker_query::model::{Change, QUERY_DEPTH_MAX, Query};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::alter::OptionalStep;
use crate::channel::{self, ChannelStatement};
use crate::comment::CommentStatement;
use crate::conflict_target::join_paths;
use crate::copy::{self, CopyStatement};
use crate::cursor::{self, CursorStatement};
use crate::dialect::{self, EskerDialect};
use crate::explain::{Explain, ExplainOptions};
use crate::expression::ParameterNames;
use crate::maintenance::{self, MaintenanceStatement};
use crate::named_statement::{self, NamedStatement};
use crate::qualified_name::names_main;
use crate::sequence::{self, RestartStatement};
use crate::setting::{self, SettingStatement};
use crate::show::{self, Summarized};
use crate::temporary::OnCommit;
use crate::transaction::{self, TransactionStatement};
use crate::watch::{self, WatchStatement};
use crate::{
    Error, Result, alter, change, erase, index, merge, number, overriding, parameter, placed,
    schema, select, table, table_as, view, window,
};

/// The longest text, in bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The most words and symbols, commas and parentheses apart. Operators nest, and what nests is
/// taken apart on the stack.
const WORDS_MAX: usize = 4_000;

/// The most that may lie in each other, as the grammar counts: an expression of
/// [`EXPR_DEPTH_MAX`](esker_query::model::EXPR_DEPTH_MAX) levels takes two for each in parentheses.
pub(crate) const NESTING_MAX: usize = 300;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Statement {
    /// Run a query.
    Query(Query),
    /// Run a query within a transaction, and hold the rows that it finds: `SELECT … FOR UPDATE`.
    QueryForUpdate(Query),
    /// Show the steps of a query, and what they met where it runs: `EXPLAIN`, `EXPLAIN ANALYZE`.
    Explain(Explain),
    /// Answer what there is in each column of a query's answer: `SUMMARIZE`.
    Summarize(Query),
    /// Change rows.
    Change(Change),
    /// Create a table.
    CreateTable {
        /// Its name.
        name: String,
        /// Its fields and key.
        schema: Schema,
        /// Whether it takes the place of a table of this name.
        or_replace: bool,
        /// Whether a table of this name is good as it is.
        if_not_exists: bool,
    },
    /// Create a table with the rows that a query answers.
    CreateTableAs {
        /// Its name.
        name: String,
        /// The query.
        query: Box<Query>,
        /// What its first fields are called.
        columns: Vec<String>,
        /// The fields of its key; without any it is generated.
        primary_key: Vec<String>,
        /// Whether it gets the rows: not with `WITH NO DATA`.
        with_data: bool,
        /// Whether it takes the place of a table of this name.
        or_replace: bool,
        /// Whether a table of this name is good as it is.
        if_not_exists: bool,
    },
    /// Change a table's fields, defaults or checks.
    AlterTable {
        /// Its name.
        name: String,
        /// The changes, in order.
        alterations: Vec<Alteration>,
        /// Whether views that read what goes go, too.
        cascade: bool,
        /// Whether it is good that there is none.
        if_exists: bool,
        /// Which of the changes are left out where there is nothing to do.
        optional: Vec<OptionalStep>,
    },
    /// Give a table another name.
    RenameTable {
        /// Its name.
        name: String,
        /// The new name.
        to: String,
        /// Whether it is good that there is none.
        if_exists: bool,
    },
    /// Remove tables, all or none.
    DropTable {
        /// Their names.
        names: Vec<String>,
        /// Whether it is good that there is none.
        if_exists: bool,
        /// Whether views that read them go, too.
        cascade: bool,
    },
    /// Create a view.
    CreateView {
        /// Its name.
        name: String,
        /// What its first columns are called.
        columns: Vec<String>,
        /// The query.
        query: Box<Query>,
        /// The query as it is written.
        text: String,
        /// Whether it takes the place of a view of this name.
        or_replace: bool,
        /// Whether a view of this name is good as it is.
        if_not_exists: bool,
        /// Whether it is a materialized view: a rollup.
        is_rollup: bool,
        /// Of a rollup: for how long what its groups came to is kept when events end.
        history: Option<KeptFor>,
    },
    /// Be told, or tell others: `LISTEN`, `UNLISTEN`, `NOTIFY`.
    Channel(ChannelStatement),
    /// Set for how long the history of a materialized view is kept.
    SetViewRetention {
        /// Its name.
        name: String,
        /// For how long.
        kept: KeptFor,
    },
    /// Give a view another name.
    RenameView {
        /// Its name.
        name: String,
        /// The new name.
        to: String,
        /// Whether it is good that there is none.
        if_exists: bool,
    },
    /// Remove views, all or none.
    DropView {
        /// Their names.
        names: Vec<String>,
        /// Whether it is good that there is none.
        if_exists: bool,
        /// Whether views that read them go, too.
        cascade: bool,
        /// Whether they are materialized views: rollups.
        are_rollups: bool,
    },
    /// Create a schema, which stands before the names of tables.
    CreateSchema {
        /// Its name.
        name: String,
        /// Whether a schema of this name is good as it is.
        if_not_exists: bool,
    },
    /// Remove schemas, all or none.
    DropSchema {
        /// Their names.
        names: Vec<String>,
        /// Whether it is good that there is none.
        if_exists: bool,
        /// Whether what is in them goes, too.
        cascade: bool,
    },
    /// Say what a schema, view, index or sequence is about.
    Comment(CommentStatement),
    /// Put a table or view into another schema.
    SetSchema {
        /// Its name.
        name: String,
        /// The schema.
        schema: String,
        /// Whether it is good that there is none.
        if_exists: bool,
    },
    /// Create an index.
    CreateIndex {
        /// The table.
        table: String,
        /// The index.
        index: NewIndex,
        /// Whether an index of this name is good as it is.
        if_not_exists: bool,
    },
    /// Remove an index.
    DropIndex {
        /// The table; the only one with such an index where none is named.
        table: Option<String>,
        /// The index.
        name: String,
        /// Whether it is good that there is none.
        if_exists: bool,
    },
    /// Create a sequence.
    CreateSequence {
        /// Its name.
        name: String,
        /// Its first value.
        start: i64,
        /// From one value to the next.
        increment: i64,
        /// Whether a sequence of this name is good as it is.
        if_not_exists: bool,
    },
    /// Remove a sequence.
    DropSequence {
        /// Its name.
        name: String,
        /// Whether it is good that there is none.
        if_exists: bool,
    },
    /// Let a sequence begin again.
    Restart(RestartStatement),
    /// Begin or end a transaction, or go back in it.
    Transaction(TransactionStatement),
    /// Choose a setting of the session, or show it.
    Setting(SettingStatement),
    /// Keep a statement by a name, run or forget it: `PREPARE`, `EXECUTE`, `DEALLOCATE`.
    Named(NamedStatement),
    /// Answer the rows of a query some at a time: `DECLARE`, `FETCH`, `CLOSE`.
    Cursor(CursorStatement),
    /// Add rows of a file to a table, or write rows to one: `COPY`.
    Copy(CopyStatement),
    /// Look after the database: `CHECKPOINT`, `VACUUM`, `ANALYZE`.
    Maintenance(MaintenanceStatement),
    /// Tell the events of a stream as they arrive: `WATCH`.
    Watch(WatchStatement),
    /// Hold tables until the end of the transaction: `LOCK TABLE`.
    LockTable {
        /// Their names.
        tables: Vec<String>,
        /// Whether rows that others change meanwhile are a conflict; without it there is nothing
        /// to do.
        holds: bool,
    },
    /// Make a table or view that is the session's own: `CREATE TEMP TABLE`, `CREATE TEMP VIEW`.
    Temporary {
        /// The statement that makes it.
        statement: Box<Statement>,
        /// What becomes of its rows at the end of a transaction.
        on_commit: OnCommit,
    },
    /// A statement that says of a table that it is of `main`, where a session may have a temporary
    /// table of that name.
    Qualified(Box<Statement>),
    /// Remove all rows of tables.
    Truncate {
        /// Their names.
        names: Vec<String>,
        /// Whether it is good that there is none of a name.
        if_exists: bool,
        /// Whether tables whose rows name theirs are emptied, too.
        cascade: bool,
    },
}

impl Statement {
    /// The same for a table or view of the session's own.
    pub(crate) fn temporary(self, on_commit: OnCommit) -> Self {
        Self::Temporary { statement: Box::new(self), on_commit }
    }

    /// What it says, wherever its tables are.
    #[must_use]
    pub fn said(&self) -> &Self {
        match self {
            Self::Qualified(statement) => statement,
            other => other,
        }
    }

    /// True when it changes nothing that is stored, and begins and ends no transaction.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        match self {
            Self::Qualified(statement) => statement.only_reads(),
            Self::Query(query) | Self::Summarize(query) => !query.takes_values(),
            Self::Explain(explain) => !explain.analyze || !explain.query.takes_values(),
            Self::Setting(_) | Self::Watch(_) => true,
            Self::Named(named) => !matches!(named, NamedStatement::Execute { .. }),
            Self::Cursor(CursorStatement::Declare { query, .. }) => !query.takes_values(),
            Self::Cursor(_) => true,
            Self::Copy(CopyStatement::To { query, .. }) => !query.takes_values(),
            Self::Maintenance(MaintenanceStatement::Analyze(_)) => true,
            _ => false,
        }
    }

    /// True when it answers rows: a query, and a change with `RETURNING`.
    #[must_use]
    pub fn answers_rows(&self) -> bool {
        match self {
            Self::Qualified(statement) => statement.answers_rows(),
            Self::Query(_) | Self::QueryForUpdate(_) | Self::Summarize(_) => true,
            Self::Cursor(CursorStatement::Fetch { .. }) => true,
            Self::Setting(SettingStatement::ShowPath) => true,
            Self::Change(Change::Insert(insert)) => insert.returning.is_some(),
            Self::Change(Change::Update(update)) => update.returning.is_some(),
            Self::Change(Change::Delete(delete)) => delete.returning.is_some() || delete.erase,
            Self::Change(Change::Merge(merge)) => merge.returning.is_some(),
            _ => false,
        }
    }
}

/// Reads one `SELECT`.
///
/// # Errors
/// `InvalidQuery` with the place of a syntax error, or the text of what is not supported.
pub fn parse(text: &str) -> Result<Query> {
    match placed::in_main(parse_statement(text)?)? {
        Statement::Query(query) => Ok(query),
        Statement::QueryForUpdate(_) => {
            Err(Error::invalid("expected a SELECT that only reads, found FOR UPDATE"))
        }
        _ => Err(Error::invalid(format!(
            "expected SELECT, found {}",
            text.split_whitespace().next().unwrap_or_default().to_uppercase()
        ))),
    }
}

/// Reads one `SELECT`, `EXPLAIN SELECT`, `INSERT`, `UPDATE`, `DELETE`, `CREATE TABLE`,
/// `ALTER TABLE`, `DROP TABLE`, `TRUNCATE TABLE`, `CREATE VIEW`, `ALTER VIEW`, `DROP VIEW`,
/// `CREATE INDEX`, `DROP INDEX`, `CREATE SEQUENCE`, `DROP SEQUENCE`, `SET`, `RESET`, `SHOW`,
/// `DESCRIBE`, `SUMMARIZE`, `PRAGMA`, `PREPARE`, `EXECUTE`, `DEALLOCATE`, `DECLARE`, `FETCH`,
/// `CLOSE`, `COPY`, `CHECKPOINT`, `VACUUM`, `ANALYZE`, `LOCK TABLE`, `WATCH`,
/// `BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT` or `RELEASE`.
///
/// # Errors
/// As [`parse`].
pub fn parse_statement(text: &str) -> Result<Statement> {
    parse_with_parameters(text).map(|(statement, _)| statement)
}

/// Reads a statement, and the names of its parameters in their order.
///
/// # Errors
/// As [`parse`].
pub fn parse_with_parameters(text: &str) -> Result<(Statement, ParameterNames)> {
    let mut tokens = tokens(text)?;
    let parameters = parameter::name_all(&mut tokens)?;
    let names_main = names_main(&tokens);
    let statement = read(tokens, text, &parameters)?;
    let own = match &statement {
        // Those are of the statement within.
        Statement::Named(NamedStatement::Prepare { .. }) => Vec::new().into(),
        _ => parameters,
    };
    Ok((if names_main { Statement::Qualified(Box::new(statement)) } else { statement }, own))
}

/// Reads the tokens of a statement, or of one that is a part of it.
pub(crate) fn read(
    tokens: Vec<TokenWithSpan>,
    text: &str,
    parameters: &ParameterNames,
) -> Result<Statement> {
    if let Some(statement) = beyond_grammar(&tokens, text, parameters)? {
        return Ok(statement);
    }
    if let Some(statement) = table_as::read(&tokens, parameters)? {
        return Ok(statement);
    }
    match show::summarized(&tokens)? {
        None => {}
        Some(Summarized::Table(query)) => return Ok(Statement::Summarize(*query)),
        Some(Summarized::Query(tokens)) => {
            return match convert(parse_one(join_paths(tokens))?, text, parameters)? {
                Statement::Query(query) => Ok(Statement::Summarize(query)),
                _ => Err(Error::invalid("SUMMARIZE: expected a table or a SELECT that only reads")),
            };
        }
    }
    let read = parse_one(join_paths(tokens))?;
    if let Some(statement) = channel::convert(&read)? {
        return Ok(statement);
    }
    match transaction::convert(&read)? {
        Some(statement) => Ok(statement),
        None => convert(read, text, parameters),
    }
}

/// A statement that the grammar does not know. Each reader takes a copy of the tokens, so that only
/// what begins as such a statement is read.
fn beyond_grammar(
    tokens: &[TokenWithSpan],
    text: &str,
    parameters: &ParameterNames,
) -> Result<Option<Statement>> {
    let first = tokens.iter().find(|token| !matches!(token.token, Token::Whitespace(_)));
    let Some(Token::Word(word)) = first.map(|token| &token.token) else { return Ok(None) };
    match word.value.to_ascii_lowercase().as_str() {
        _ if word.quote_style.is_some() => return Ok(None),
        "prepare" | "execute" | "deallocate" => {
            return named_statement::read(tokens, text, parameters);
        }
        "copy" => return copy::read(tokens, parameters),
        "declare" | "fetch" | "close" => return cursor::read(tokens, text, parameters),
        "checkpoint" | "vacuum" | "analyze" | "lock" => return maintenance::read(tokens),
        "watch" => return watch::read(tokens, text, parameters),
        _ => {}
    }
    match Some(word.keyword) {
        Some(Keyword::CREATE | Keyword::ALTER) => {}
        Some(Keyword::SET | Keyword::RESET) => return setting::read(tokens),
        Some(Keyword::SHOW | Keyword::DESCRIBE | Keyword::DESC | Keyword::PRAGMA) => {
            return show::read(tokens);
        }
        _ => return Ok(None),
    }
    let readers = [
        sequence::create,
        alter::add_value,
        alter::expression,
        alter::identity,
        alter::options,
        alter::set_schema,
        view::rename,
    ];
    for read in readers {
        if let Some(statement) = read(tokens)? {
            return Ok(Some(statement));
        }
    }
    Ok(None)
}

fn parse_one(tokens: Vec<TokenWithSpan>) -> Result<ast::Statement> {
    let parser = Parser::new(&EskerDialect).with_recursion_limit(NESTING_MAX);
    let mut parser = parser.with_tokens_with_locations(tokens);
    let mut statements = match parser.parse_statements() {
        Ok(statements) => statements,
        Err(error) => return Err(syntax(dialect::quoting_helps(error, &parser.into_tokens()))),
    };
    // The grammar stops at the word END, as before the end of a block, and leaves the rest unread.
    if parser.peek_token_ref().token != Token::EOF {
        let found = parser.peek_token_ref();
        let refused: std::result::Result<(), _> = parser.expected_ref("end of statement", found);
        return refused
            .map_err(|e| syntax(dialect::quoting_helps(e, &parser.into_tokens())))
            .and_then(|()| Err(Error::invalid("expected the end of the statement")));
    }
    match (statements.pop(), statements.len()) {
        (None, _) => Err(Error::invalid("expected a statement, found nothing")),
        (Some(statement), 0) => Ok(statement),
        (Some(_), more) => {
            Err(Error::invalid(format!("expected one statement, found {}", more + 1)))
        }
    }
}

fn convert(
    statement: ast::Statement,
    text: &str,
    parameters: &ParameterNames,
) -> Result<Statement> {
    let query = |query: Box<ast::Query>| select::convert(*query, parameters);
    match statement {
        ast::Statement::Query(query) if is_change(&query.body) => {
            change::with_queries(*query, parameters).map(Statement::Change)
        }
        ast::Statement::Query(select) => select::statement(*select, parameters),
        ast::Statement::Explain {
            describe_alias: ast::DescribeAlias::Explain,
            analyze,
            verbose: _,
            query_plan: _,
            estimate: false,
            statement,
            format,
            options,
        } => match *statement {
            ast::Statement::Query(select) if !is_change(&select.body) => {
                let options = ExplainOptions::read(analyze, format.as_ref(), options.as_deref())?;
                Ok(Statement::Explain(options.of(query(select)?)))
            }
            other => Err(not_explained(&other)),
        },
        ast::Statement::Insert(insert) => change::insert(insert, parameters).map(Statement::Change),
        ast::Statement::Update(update) => change::update(update, parameters).map(Statement::Change),
        ast::Statement::Delete(delete) => change::delete(delete, parameters).map(Statement::Change),
        ast::Statement::Merge(merge) => merge::merge(&merge, parameters).map(Statement::Change),
        ast::Statement::CreateTable(create) => table::create(create),
        ast::Statement::CreateView(create) => view::create(create, text, parameters),
        ast::Statement::AlterTable(alter) => alter::convert(&alter),
        ast::Statement::Comment { object_type, object_name, comment, if_exists } => {
            alter::comment(&object_type, &object_name, comment.as_ref(), if_exists)
        }
        ast::Statement::CreateIndex(create) => index::create(&create),
        drop @ ast::Statement::Drop { object_type: ast::ObjectType::Index, .. } => {
            index::drop(&drop)
        }
        drop @ ast::Statement::Drop { object_type: ast::ObjectType::Schema, .. } => {
            schema::drop(&drop)
        }
        drop @ ast::Statement::Drop { .. } => table::drop(drop),
        create @ ast::Statement::CreateSchema { .. } => schema::create(&create),
        ast::Statement::Truncate(truncate) => table::truncate(truncate),
        other => Err(not_a_query(&other)),
    }
}

/// Whether a change of rows stands behind WITH.
fn is_change(body: &ast::SetExpr) -> bool {
    use ast::SetExpr as S;
    matches!(body, S::Insert(_) | S::Update(_) | S::Delete(_) | S::Merge(_))
}

pub(crate) fn tokens(text: &str) -> Result<Vec<TokenWithSpan>> {
    if text.len() > TEXT_BYTES_MAX {
        let len = text.len();
        return Err(Error::invalid(format!(
            "a statement has at most {TEXT_BYTES_MAX} bytes, found {len}"
        )));
    }
    let tokens = dialect::tokenize(text).map_err(|e| Error::invalid(e.to_string()))?;
    let mut tokens = number::read_all(text, tokens)?;
    dialect::quote_names(&mut tokens);
    dialect::take_hints(&mut tokens);
    overriding::take(&mut tokens);
    erase::take(&mut tokens)?;
    window::take_exclusions(&mut tokens);
    let nests = |t: &&TokenWithSpan| {
        !matches!(
            t.token,
            Token::Whitespace(_)
                | Token::Comma
                | Token::LParen
                | Token::RParen
                | Token::Number(..)
                | Token::SingleQuotedString(_)
        )
    };
    let words = tokens.iter().filter(nests).count();
    if words > WORDS_MAX {
        return Err(Error::invalid(format!(
            "a statement has at most {WORDS_MAX} words and symbols, found {words}"
        )));
    }
    if query_depth(&tokens) > QUERY_DEPTH_MAX {
        let message = format!("queries nest too deep: at most {QUERY_DEPTH_MAX} levels");
        return Err(Error::invalid(message));
    }
    Ok(tokens)
}

/// How many queries lie in each other. A query begins with its first word; one in parentheses of
/// its own is another where something follows them that ends or orders it.
fn query_depth(tokens: &[TokenWithSpan]) -> usize {
    /// What is open: whether a query has begun in it, and how deep those within it go.
    #[derive(Default)]
    struct Open {
        is_query: bool,
        within: usize,
        /// Whether parentheses with a query in them have closed last, with nothing else before.
        closed: bool,
        is_empty: bool,
    }
    let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let mut outer: Vec<Open> = Vec::new();
    let mut open = Open { is_empty: true, ..Open::default() };
    for token in tokens.iter().filter(|token| !is_blank(token)) {
        let has_closed = std::mem::take(&mut open.closed);
        open.is_query |= has_closed && is_behind_query(&token.token);
        match &token.token {
            Token::LParen => {
                outer.push(std::mem::take(&mut open));
                open.is_empty = true;
                continue;
            }
            Token::RParen => {
                // Parentheses around those of a query are one more pair.
                let is_query = open.is_query || has_closed;
                let within = open.within + usize::from(is_query);
                open = outer.pop().unwrap_or_default();
                open.closed = open.is_empty && is_query;
                open.within = open.within.max(within);
            }
            Token::Word(word) if word.quote_style.is_none() && begins_query(word.keyword) => {
                open.is_query = true;
            }
            _ => {}
        }
        open.is_empty = false;
    }
    // What is not closed is counted, too: the grammar goes as deep before it finds the end.
    let mut deepest = open.within + usize::from(open.is_query);
    for other in outer.into_iter().rev() {
        deepest = other.within.max(deepest) + usize::from(other.is_query);
    }
    deepest
}

fn begins_query(word: Keyword) -> bool {
    matches!(word, Keyword::SELECT | Keyword::VALUES | Keyword::WITH | Keyword::TABLE)
}

/// Whether a token goes on with the query in the parentheses before it, or ends another one.
fn is_behind_query(token: &Token) -> bool {
    use Keyword::{EXCEPT, FETCH, INTERSECT, LIMIT, MINUS, OFFSET, ORDER, UNION};
    match token {
        Token::Word(word) => matches!(
            word.keyword,
            UNION | INTERSECT | EXCEPT | MINUS | ORDER | LIMIT | OFFSET | FETCH
        ),
        _ => false,
    }
}

pub(crate) fn syntax(error: sqlparser::parser::ParserError) -> Error {
    use sqlparser::parser::ParserError;
    match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
            Error::invalid(with_hint(plain(message)))
        }
        ParserError::RecursionLimitExceeded => {
            Error::invalid(format!("the statement nests too deep: at most {NESTING_MAX} levels"))
        }
    }
}

/// What the parser says of itself, in the words of who writes SQL.
fn plain(message: String) -> String {
    // `No infix parser for token Word(Word { value: "x", … }) at Line: 1, Column: 8`
    let Some(rest) = message
        .strip_prefix("sql parser error: ")
        .unwrap_or(&message)
        .strip_prefix("No infix parser for token ")
    else {
        return message;
    };
    let place = rest.rfind(" at Line: ").and_then(|at| rest.get(at..)).unwrap_or_default();
    let word = rest.split_once("value: \"").and_then(|(_, rest)| rest.split_once('"'));
    match word {
        Some((word, _)) => format!("expected the end of the expression, found {word}{place}"),
        None => format!("expected the end of the expression{place}"),
    }
}

/// The grammar takes KEY and INDEX among columns for the beginning of an index, as MySQL does.
fn with_hint(message: String) -> String {
    const LIST: &str = "a list of columns in parentheses";
    let hint = "; a column called key or index is written in double quotes";
    message.replacen(LIST, &format!("{LIST}{hint}"), 1)
}

fn not_explained(statement: &ast::Statement) -> Error {
    let text = statement.to_string();
    let first = first_word(&text);
    Error::invalid(format!("EXPLAIN: expected SELECT, found {first}: `{}`", shorten(&text)))
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

fn not_a_query(statement: &ast::Statement) -> Error {
    let text = statement.to_string();
    let first = first_word(&text);
    let expected = "SELECT, INSERT, UPDATE, DELETE, MERGE, CREATE, ALTER, DROP or TRUNCATE";
    Error::invalid(format!("expected {expected}, found {first}: `{}`", shorten(&text)))
}

/// The error for what the grammar knows and the model does not.
pub(crate) fn unsupported(what: &str, text: impl std::fmt::Display) -> Error {
    Error::invalid(format!("{what} is not supported yet: `{}`", shorten(&text.to_string())))
}

/// The start of a long text.
pub(crate) fn shorten(text: &str) -> String {
    const CHARACTERS: usize = 120;
    let mut short: String = text.chars().take(CHARACTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
