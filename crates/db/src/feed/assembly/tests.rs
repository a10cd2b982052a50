use super::*;

fn assembly() -> Assembly {
    Assembly::behind("7.0".parse().unwrap())
}

/// An event of a commit of `nth` + `more`.
fn event(nth: u64, more: u64) -> Vec<Value> {
    let counts = [Value::Uint(nth), Value::Uint(more)];
    let values =
        [Value::Timestamp(7), Value::Text("truncate".to_owned())].into_iter().chain(counts);
    values.chain([Value::Null, Value::Null, Value::Null]).collect()
}

/// The row ids that commits end with, how many changes each has, and the first event that is
/// refused.
fn taken(assembly: &mut Assembly, events: &[(u64, u64)]) -> (Vec<(u64, usize)>, Option<u64>) {
    let mut commits = Vec::new();
    for (row_id, (nth, more)) in (1..).zip(events) {
        match assembly.take((row_id, &event(*nth, *more))) {
            Taken::Whole(commit) => commits.push((commit.cursor.row_id, commit.changes.len())),
            Taken::Part => {}
            Taken::Strange => return (commits, Some(row_id)),
        }
    }
    (commits, None)
}

#[test]
fn a_commit_is_told_from_its_first_event_to_its_last() {
    let whole = [(1, 0), (1, 2), (2, 1), (3, 0), (1, 1), (2, 0)];
    assert_eq!(taken(&mut assembly(), &whole), (vec![(1, 1), (4, 3), (6, 2)], None));
    // The first events are gone, or are before the place.
    assert_eq!(taken(&mut assembly(), &[(2, 1), (3, 0), (1, 0)]), (vec![(3, 1)], None));
    let mut none = assembly();
    assert_eq!(taken(&mut none, &[(2, 1), (3, 0)]), (vec![], None));
    assert_eq!(none.through().row_id, 2, "what it has passed over it does not meet again");
}

#[test]
fn halves_of_commits_are_not_joined() {
    for events in [
        // The end of one commit, or the beginning of the next, is not there.
        [(1, 0), (1, 2), (1, 0)],
        [(1, 0), (1, 1), (3, 0)],
        [(1, 0), (1, 1), (2, 3)],
    ] {
        assert_eq!(taken(&mut assembly(), &events), (vec![(1, 1)], Some(3)));
    }
    let mut strange = assembly();
    assert_eq!(taken(&mut strange, &[(1, 0), (2, 0)]), (vec![(1, 1)], Some(2)));
    assert_eq!(strange.through().row_id, 1);
}
