//! `PRAGMA`, as SQLite has it: questions about tables, each a query over the tables about tables.
//! As functions they stand in FROM: `FROM pragma_table_info('t')`.

use esker_format::suggest::near_or_all;
use esker_query::Query;
use esker_query::model::Expr;
use sqlparser::ast;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::qualified_name;
use crate::show::{Shown, end, text};
use crate::statement::{Statement, parse, syntax};
use crate::{Error, Result};

const FUNCTION_PREFIX: &str = "pragma_";

/// One of them.
struct Pragma {
    name: &'static str,
    /// What it is about.
    about: About,
    /// The query; `{t}` is the condition that it is of the table, `{i}` the name of the index.
    query: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    All,
    Table,
    Index,
}

const PRAGMAS: &[Pragma] = &[
    // Those that are generated are hidden, as SQLite has it.
    Pragma {
        name: "table_info",
        about: About::Table,
        query: "SELECT row_number() OVER (ORDER BY position) - 1 AS cid, column_name AS name, \
                type, CAST(NOT is_nullable AS i64) AS \"notnull\", \"default\" AS dflt_value, \
                coalesce(key_position, 0) AS pk FROM esker_columns \
                WHERE {t} AND generated IS NULL ORDER BY position",
    },
    Pragma {
        name: "table_xinfo",
        about: About::Table,
        query: "SELECT position - 1 AS cid, column_name AS name, type, \
                CAST(NOT is_nullable AS i64) AS \"notnull\", \"default\" AS dflt_value, \
                coalesce(key_position, 0) AS pk, CASE WHEN generated IS NULL THEN 0 \
                WHEN extra LIKE '% VIRTUAL' THEN 2 ELSE 3 END AS hidden \
                FROM esker_columns WHERE {t} ORDER BY position",
    },
    Pragma {
        name: "table_list",
        about: About::All,
        query: "SELECT t.table_schema AS schema, t.table_name AS name, \
                CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END AS type, \
                count(*) AS ncol, 0 AS wr, 1 AS strict \
                FROM information_schema.tables t JOIN information_schema.columns c \
                ON c.table_schema = t.table_schema AND c.table_name = t.table_name \
                WHERE t.table_type IN ('BASE TABLE', 'LOCAL TEMPORARY', 'VIEW') \
                GROUP BY 1, 2, 3 ORDER BY 1, 2",
    },
    Pragma {
        name: "index_list",
        about: About::Table,
        query: "SELECT row_number() OVER (ORDER BY index_name) - 1 AS seq, index_name AS name, \
                CAST(is_unique AS i64) AS \"unique\", 'c' AS origin, \
                CAST(condition IS NOT NULL AS i64) AS partial \
                FROM esker_indexes i WHERE {t} ORDER BY 1",
    },
    Pragma {
        name: "index_info",
        about: About::Index,
        query: "SELECT i.position - 1 AS seqno, coalesce(c.position - 1, -2) AS cid, \
                i.column_name AS name FROM esker_index_columns i \
                LEFT JOIN esker_columns c ON c.table_schema = i.table_schema \
                AND c.table_name = i.table_name AND c.column_name = i.column_name \
                WHERE i.index_name = {i} ORDER BY i.table_name, i.position",
    },
    Pragma {
        name: "foreign_key_list",
        about: About::Table,
        query: "SELECT reference_number - 1 AS id, position - 1 AS seq, \
                referenced_table AS \"table\", column_name AS \"from\", \
                referenced_column AS \"to\", on_update, on_delete, 'NONE' AS match \
                FROM esker_references r WHERE {t} ORDER BY 1, 2",
    },
    Pragma {
        name: "database_list",
        about: About::All,
        query: "SELECT CASE schema_name WHEN 'main' THEN 0 ELSE 1 END AS seq, \
                schema_name AS name, '' AS file \
                FROM information_schema.schemata WHERE schema_name <> 'information_schema'",
    },
];

impl Pragma {
    fn named(name: &str) -> Result<&'static Self> {
        let found = PRAGMAS.iter().find(|pragma| pragma.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let near = near_or_all(name, "pragmas", PRAGMAS.iter().map(|pragma| pragma.name));
            Error::invalid(format!("PRAGMA {name} is unknown{near}"))
        })
    }

    fn query(&self, of: Option<&ast::ObjectName>) -> Result<Query> {
        let name = self.name;
        let query = match (self.about, of) {
            (About::All, None) => self.query.to_owned(),
            (About::All, Some(_)) => {
                return Err(Error::invalid(format!("PRAGMA {name} is about all tables: {name}()")));
            }
            (About::Table, Some(of)) => self.query.replace("{t}", &Shown::of(of)?.condition("")),
            (About::Index, Some(of)) => {
                let index = Expr::literal(qualified_name::beside_table(of)?.as_str());
                self.query.replace("{i}", &index.to_string())
            }
            (About::Table | About::Index, None) => {
                let what = if self.about == About::Table { "table" } else { "index" };
                return Err(Error::invalid(format!(
                    "PRAGMA {name}: expected the name of the {what}: PRAGMA {name}({what})"
                )));
            }
        };
        parse(&query)
    }
}

/// What stands behind the word PRAGMA.
pub(crate) fn read(parser: &mut Parser<'_>) -> Result<Statement> {
    let name = parser.parse_object_name(false).map_err(syntax)?;
    // SQLite writes a schema before the name: `PRAGMA main.table_info(t)`.
    let pragma = Pragma::named(&qualified_name::beside_table(&name)?)?;
    let of = if parser.consume_token(&Token::LParen) {
        let of = match parser.peek_token_ref().token {
            Token::RParen => None,
            _ => Some(object(parser)?),
        };
        parser.expect_token(&Token::RParen).map_err(syntax)?;
        of
    } else if parser.consume_token(&Token::Eq) {
        Some(object(parser)?)
    } else {
        None
    };
    end(parser)?;
    pragma.query(of.as_ref()).map(Statement::Query)
}

/// A name, or one in a text.
fn object(parser: &mut Parser<'_>) -> Result<ast::ObjectName> {
    match text(parser) {
        Some(name) => Ok(ast::ObjectName::from(vec![ast::Ident::new(name)])),
        None => parser.parse_object_name(false).map_err(syntax),
    }
}

/// The query of a pragma that is called in FROM; `None` for another function.
pub(crate) fn call(name: &ast::ObjectName, args: &[ast::FunctionArg]) -> Result<Option<Query>> {
    let [ast::ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return Ok(None) };
    let lower = name.value.to_ascii_lowercase();
    let Some(pragma) = lower.strip_prefix(FUNCTION_PREFIX) else { return Ok(None) };
    let pragma = Pragma::named(pragma)?;
    let of = match args {
        [] => None,
        [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Value(value)))] => {
            value.value.clone().into_string()
        }
        _ => None,
    };
    if of.is_none() && !args.is_empty() {
        return Err(Error::invalid(format!("{name}: expected one name, as a text")));
    }
    let of = of.map(|of| ast::ObjectName::from(vec![ast::Ident::new(of)]));
    pragma.query(of.as_ref()).map(Some)
}
