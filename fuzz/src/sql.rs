//! SQL text is a query or an error, never a panic; a query is shown as text that is the same query.

use esker_sql::{Statement, parse, parse_statement};

/// The target: a statement.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let query = match parse_statement(text) {
        Ok(Statement::Query(query)) => Some(query),
        Ok(Statement::Explain(explain)) => Some(explain.query),
        _ => None,
    };
    if let Some(query) = query {
        let shown = query.to_string();
        let again = parse(&shown);
        assert_eq!(again.ok().as_ref(), Some(&query), "{text:?} is shown as {shown:?}");
    }
}
