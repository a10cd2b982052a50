use esker_format::DataType;
use esker_format::schema::{ChangedRows, Changes};

use super::*;
use crate::feed::shape::schema_of;
use crate::{Options, Schema};

fn reader(from: ChangesFrom) -> ChangeReader {
    let db = Options::new().memory().unwrap();
    let kept = Changes::Kept { keep_us: 1_000_000, rows: ChangedRows::Key };
    let schema = Schema::builder().field("n", DataType::I64).primary_key(["n"]).changes(kept);
    db.create_table("t", schema.build().unwrap()).unwrap();
    db.changes("t", from).unwrap()
}

/// An event of a commit of `nth` + `more`.
fn event(nth: u64, more: u64) -> Row {
    let schema = std::sync::Arc::new(schema_of(1).unwrap());
    let counts = [Value::Uint(nth), Value::Uint(more)];
    let values =
        [Value::Timestamp(7), Value::Text("truncate".to_owned())].into_iter().chain(counts);
    Row::new(schema, values.chain([Value::Null, Value::Null, Value::Null]).collect())
}

/// What a reader makes of events: the rows that commits end with, and the first event that it does
/// not take.
fn taken(reader: &mut ChangeReader, events: &[(u64, u64)]) -> (Vec<(u64, usize)>, Option<u64>) {
    let mut commits = Vec::new();
    let refused = (1..).zip(events).find(|(row_id, (nth, more))| {
        reader.take((*row_id, &event(*nth, *more)), &mut commits).is_none()
    });
    let ends = commits.iter().map(|commit| (commit.cursor.row_id, commit.changes.len()));
    (ends.collect(), refused.map(|(row_id, _)| row_id))
}

#[test]
fn a_commit_is_told_from_its_first_event_to_its_last() {
    let whole = [(1, 0), (1, 2), (2, 1), (3, 0), (1, 1), (2, 0)];
    for from in [ChangesFrom::Start, ChangesFrom::Now] {
        assert_eq!(taken(&mut reader(from), &whole), (vec![(1, 1), (4, 3), (6, 2)], None));
        // The first events are gone, or are before the place.
        let mut late = reader(from);
        assert_eq!(taken(&mut late, &[(2, 1), (3, 0), (1, 0)]), (vec![(3, 1)], None));
        let mut none = reader(from);
        assert_eq!(taken(&mut none, &[(2, 1), (3, 0)]), (vec![], None));
        assert_eq!(none.cursor().row_id, 2, "what it has passed over it does not meet again");
    }
}

#[test]
fn halves_of_commits_are_not_joined() {
    for events in [
        // The end of one commit, or the beginning of the next, is not there.
        [(1, 0), (1, 2), (1, 0)],
        [(1, 0), (1, 1), (3, 0)],
        [(1, 0), (1, 1), (2, 3)],
    ] {
        assert_eq!(taken(&mut reader(ChangesFrom::Start), &events), (vec![(1, 1)], Some(3)));
    }
    assert_eq!(taken(&mut reader(ChangesFrom::Start), &[(1, 0), (2, 0)]), (vec![(1, 1)], Some(2)));
    let mut strange = reader(ChangesFrom::Start);
    strange.end(Ended::Strange(3));
    for _ in 0..2 {
        let e = strange.next_commits(5, Duration::ZERO).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
    }
}
