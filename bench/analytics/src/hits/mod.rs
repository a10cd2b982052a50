//! A table of ClickBench's shape, made from nothing but numbers: a row a page view, thirty columns,
//! most values skewed, many users; and 43 questions of our own of the kinds that are asked there.

mod data;
mod questions;

use std::path::Path;

use crate::workload::Kind::{Big, Date, Decimal, Float, Int, Small, Text, Timestamp};
use crate::workload::{Engine, Table, Workload};

const TABLES: &[Table] = &[Table {
    name: "hits",
    columns: &[
        ("watch_id", Big),
        ("event_time", Timestamp),
        ("event_date", Date),
        ("counter_id", Int),
        ("user_id", Big),
        ("client_ip", Big),
        ("region_id", Int),
        ("country", Text),
        ("url", Text),
        ("referer", Text),
        ("title", Text),
        ("search_phrase", Text),
        ("search_engine_id", Small),
        ("traffic_source", Small),
        ("adv_engine_id", Small),
        ("is_refresh", Small),
        ("is_link", Small),
        ("is_download", Small),
        ("is_mobile", Small),
        ("mobile_phone", Small),
        ("mobile_model", Text),
        ("os", Small),
        ("user_agent", Small),
        ("resolution_width", Int),
        ("resolution_height", Int),
        ("window_width", Int),
        ("window_height", Int),
        ("duration_ms", Int),
        ("load_seconds", Float),
        ("price", Decimal(12)),
    ],
    key: &[],
}];

/// So many rows, with the figure that is asked for.
pub fn workload(rows: u64) -> Workload {
    Workload {
        title: format!("hits, {rows} rows"),
        tables: TABLES,
        questions: questions::all(rows),
        write: Box::new(move |directory: &Path| data::write(&TABLES[0], directory, rows)),
        planned: Vec::new(),
        beside: Engine::DuckDb,
        mean_most: Some(1.0),
        ratio_most: None,
    }
}
