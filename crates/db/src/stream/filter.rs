//! Which events are wanted.

use esker_format::json::{Json, parse, string};
use esker_query::json::JsonQuery;
use esker_query::model::Expr;

use super::Stream;
use super::condition::{all_of, within};
use crate::{Error, Result};

impl Stream {
    /// A filter as queries in JSON have it in `where`, such as
    /// `{"field": "n", "op": "gt", "value": 5}`.
    ///
    /// ```
    /// use esker::{DataType, Options, Schema};
    ///
    /// let db = Options::new().memory()?;
    /// let schema = Schema::builder().field("t", DataType::Timestamp).field("n", DataType::I64);
    /// db.create_table("events", schema.stream("t", []).build()?)?;
    /// let events = db.stream("events")?;
    /// let filter = events.parse_filter(r#"{"field": "n", "op": "gt", "value": 5}"#)?;
    /// assert_eq!(filter.to_string(), "n > 5");
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` with the place of what does not fit, and for a filter that reads tables.
    pub fn parse_filter(&self, json: &str) -> Result<Expr> {
        let at = |e: Error| match e.to_string() {
            // It tells the place itself.
            text if text.starts_with("where") => Error::new(e.kind(), text),
            text => Error::new(e.kind(), format!("where: {text}")),
        };
        // It is one value, and no more of a query than that.
        parse(json).map_err(|e| at(e.into()))?;
        let name = self.table.name();
        let quoted = string(&name);
        let table = Json::document(&quoted);
        let text = format!("{{\"table\": {table}, \"where\": {json}}}");
        let query = JsonQuery::parse(&text).map_err(|e| at(e.into()))?;
        if query.tables().into_iter().any(|table| table != name) {
            let message = "where: expected a condition on the event alone, found another table";
            return Err(Error::invalid(message));
        }
        let bound = query.bind(&self.schema()).map_err(|e| at(e.into()))?;
        let missing = || Error::invalid("where: expected a condition, found none");
        bound.filter.filter(|filter| !filter.has_subquery()).ok_or_else(missing)
    }
}

impl Stream {
    /// What is true of the events that pass a filter, from a time on and before another one, in
    /// microseconds since 1970; `None` for all events.
    ///
    /// # Errors
    /// `Corrupt` when the stream has no times.
    #[doc(hidden)]
    pub fn narrowed(
        &self,
        filter: Option<Expr>,
        from: Option<i64>,
        to: Option<i64>,
    ) -> Result<Option<Expr>> {
        Ok(all_of([filter, within(&self.schema(), from, to)?]))
    }
}
