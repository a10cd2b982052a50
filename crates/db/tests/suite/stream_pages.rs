//! Pages of events by their times: whatever comes or goes between two pages, none is skipped and
//! none is repeated.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

use std::cell::RefCell;
use std::collections::BTreeSet;

use esker::{
    DataType, Database, ErrorKind, EventCursor, EventId, EventOrder, Options, PageQuery, Schema,
    Stream, Value,
};
use esker_query::model::Expr;
use esker_vfs::sim::Generator;

use crate::fixture::Directory;

fn stream_in(db: &Database) -> Stream {
    let schema = Schema::builder().field("t", DataType::Timestamp).nullable("n", DataType::I64);
    db.create_table("events", schema.stream("t", []).build().unwrap()).unwrap();
    db.stream("events").unwrap()
}

fn event(t: i64, n: i64) -> Vec<Value> {
    vec![Value::Timestamp(t), Value::Int(n)]
}

fn pages(stream: &Stream, query: &PageQuery, mut between: impl FnMut()) -> Vec<EventId> {
    let (mut after, mut ids) = (None, Vec::new());
    loop {
        let page = stream.page(&PageQuery { after, ..query.clone() }).unwrap();
        assert!(page.events.len() <= query.limit);
        ids.extend(page.events.iter().map(|(id, _)| *id));
        let Some(next) = page.next else { return ids };
        assert_eq!(page.events.len(), query.limit, "only the last page is short");
        // A client keeps it as a text.
        after = Some(next.to_string().parse::<EventCursor>().unwrap());
        between();
    }
}

/// The time of each event, with its row id, as pages have them.
fn expected(stream: &Stream, db: &Database, query: &PageQuery) -> Vec<u64> {
    let rows = db.table("events").unwrap().snapshot().unwrap().rows().unwrap();
    let time = |row: &[Value]| match row[0] {
        Value::Timestamp(t) => t,
        _ => panic!("no time"),
    };
    let mut places: Vec<(i64, u64)> = rows.iter().map(|(id, row)| (time(row), *id)).collect();
    places.retain(|(t, _)| query.from.is_none_or(|from| *t >= from));
    places.retain(|(t, _)| query.to.is_none_or(|to| *t < to));
    places.sort_unstable();
    if query.order == EventOrder::Newest {
        places.reverse();
    }
    drop(stream.schema());
    places.into_iter().map(|(_, id)| id).collect()
}

fn ids(of: &[EventId]) -> Vec<u64> {
    of.iter().map(|id| id.row_id()).collect()
}

#[test]
fn pages_of_any_size_have_each_event_once_in_order() {
    let dir = Directory::new("stream-pages");
    let db = Options::new().open(&dir.0).unwrap();
    let stream = stream_in(&db);
    // Few times, so that many are equal; before and after 1970; in several segments.
    for round in 0..4i64 {
        let rows: Vec<_> = (0..50).map(|i| event((i * 7 + round) % 5 - 2, i)).collect();
        if round < 3 {
            let mut load = db.table("events").unwrap().load().unwrap();
            rows.iter().for_each(|row| load.push_row(row).unwrap());
            load.finish().unwrap();
        } else {
            assert!(stream.append_many(&rows).iter().all(Result::is_ok));
        }
        if round == 1 {
            db.compact(false, &mut |_, _| {}).unwrap();
        }
    }
    for order in [EventOrder::Newest, EventOrder::Oldest] {
        for (from, to) in [(None, None), (Some(-1), Some(2)), (None, Some(0)), (Some(2), None)] {
            for limit in [1, 3, 50, 199, 200, 10_000] {
                let query = PageQuery { order, limit, from, to, ..PageQuery::default() };
                let found = pages(&stream, &query, || {});
                assert_eq!(ids(&found), expected(&stream, &db, &query), "{query:?}");
            }
        }
    }
    let filter = stream.parse_filter(r#"{"field": "n", "op": "lt", "value": 10}"#).unwrap();
    let query = PageQuery { limit: 7, filter: Some(filter), ..PageQuery::default() };
    assert_eq!(pages(&stream, &query, || {}).len(), 40);
}

/// Events at the very time of the cursor, before it and behind it, and some that go.
#[test]
fn what_comes_and_goes_between_pages_moves_no_other_event() {
    for seed in 0..20 {
        let random = RefCell::new(Generator::new(seed, 0));
        let db = Options::new().memory().unwrap();
        let stream = stream_in(&db);
        let below = |n: u64| i64::try_from(random.borrow_mut().below(n)).unwrap();
        let at_first: Vec<EventId> =
            (0..60).map(|i| stream.append(&event(below(4), i)).unwrap()).collect();
        let order = if seed % 2 == 0 { EventOrder::Newest } else { EventOrder::Oldest };
        let query = PageQuery { order, limit: 4, ..PageQuery::default() };
        let first = ids(&pages(&stream, &query, || {}));
        let mut gone = BTreeSet::new();
        let found = pages(&stream, &query, || {
            for _ in 0..3 {
                stream.append(&event(below(4), 0)).unwrap();
            }
            let one = at_first[usize::try_from(random.borrow_mut().below(60)).unwrap()];
            if stream.delete(one).unwrap() {
                gone.insert(one.row_id());
            }
            let other = at_first[usize::try_from(random.borrow_mut().below(60)).unwrap()];
            let table = db.table("events").unwrap();
            table.update(&[Value::Uint(other.row_id())], &[("n", 7i64.into())]).unwrap();
        });
        let found = ids(&found);
        let distinct: BTreeSet<u64> = found.iter().copied().collect();
        assert_eq!(distinct.len(), found.len(), "seed {seed}: none is repeated");
        // Those that were there before and are still: all of them, in the same order.
        let is_kept = |id: &&u64| first.contains(id) && !gone.contains(*id);
        let kept: Vec<u64> = found.iter().filter(is_kept).copied().collect();
        let expected: Vec<u64> = first.iter().filter(is_kept).copied().collect();
        assert_eq!(kept, expected, "seed {seed}");
    }
}

#[test]
fn what_is_no_page_is_refused() {
    let db = Options::new().memory().unwrap();
    let stream = stream_in(&db);
    for n in 0..3 {
        stream.append(&event(n, n)).unwrap();
    }
    let refused = |query: PageQuery, words: &str| {
        let e = stream.page(&query).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
        assert!(e.to_string().contains(words), "{e}");
    };
    for limit in [0, 10_001, usize::MAX] {
        refused(PageQuery { limit, ..PageQuery::default() }, "expected 1 to 10000");
    }
    let one = stream.page(&PageQuery { limit: 1, ..PageQuery::default() }).unwrap();
    let other = PageQuery { order: EventOrder::Oldest, after: one.next, ..PageQuery::default() };
    refused(other, "the same order");
    let none = Some(Expr::field("nope").gt(1i64));
    refused(PageQuery { filter: none, ..PageQuery::default() }, "unknown field \"nope\"");
    let filters = [
        ("{", "expected"),
        ("7", "expected"),
        ("{}, \"limit\": 1", "expected"),
        (r#"{"field": "m", "op": "eq", "value": 1}"#, "unknown field \"m\""),
        (r#"{"field": "n", "op": "eq", "value": "x"}"#, "expected"),
    ];
    for (filter, words) in filters {
        let e = stream.parse_filter(filter).unwrap_err().to_string();
        assert!(e.starts_with("where") && e.contains(words), "{filter}: {e}");
    }
}
