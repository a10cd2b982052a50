//! The judge notices what it is there for.

use super::*;

const SEED: u64 = 7;

/// What a server has that did everything that was answered.
fn honest(lines: &[Line]) -> Contents {
    let balances = (0..ACCOUNTS).map(|id| (id, BALANCE)).collect();
    let mut contents = Contents { balances, ..Contents::default() };
    for line in lines {
        for n in 0..line.answered {
            apply(&mut contents, line, n);
        }
    }
    contents
}

fn apply(contents: &mut Contents, line: &Line, n: i64) {
    if line.kind == Kind::WatchedCounts {
        contents.watched += 1;
        contents.marks.insert(contents.watched, 1);
    }
    for (part, count) in line.kind.effects(n) {
        *contents.parts.entry((part, line.client, n)).or_default() += count;
    }
    if matches!(line.kind, Kind::WireTransfers | Kind::HttpTransfers) {
        let moved = transfer(SEED, line.client, n);
        *contents.balances.get_mut(&moved.from).unwrap() -= moved.amount;
        *contents.balances.get_mut(&moved.to).unwrap() += moved.amount;
    }
}

/// Clients of which each has ten operations answered and sent one more.
fn lines() -> Vec<Line> {
    let mut lines = Line::all();
    // A reader makes nothing.
    lines.retain(|line| line.kind != Kind::FollowedEvents);
    for line in &mut lines {
        (line.sent, line.answered) = (11, 10);
    }
    lines
}

#[test]
fn what_is_whole_passes_with_and_without_what_was_under_way() {
    let mut judged = lines();
    judge(&mut judged, &honest(&lines()), SEED).unwrap();
    let ends = |line: &Line| (line.sent, line.answered);
    assert!(judged.iter().filter(|line| !line.kind.is_once()).all(|line| ends(line) == (10, 10)));
    assert!(judged.iter().filter(|line| line.kind.is_once()).all(|line| ends(line) == (11, 10)));
    let mut contents = honest(&lines());
    lines().iter().for_each(|line| apply(&mut contents, line, 10));
    let mut judged = lines();
    judge(&mut judged, &contents, SEED).unwrap();
    assert!(judged.iter().all(|line| line.sent == 11));
}

#[test]
fn a_lost_operation_is_noticed_of_every_client() {
    for line in &lines() {
        let mut contents = honest(&lines());
        for (part, _) in line.kind.effects(9) {
            contents.parts.remove(&(part, line.client, 9));
        }
        let error = judge(&mut lines(), &contents, SEED).unwrap_err();
        assert!(error.ends_with("9 is lost"), "{error}");
    }
}

#[test]
fn a_half_operation_is_noticed_whether_answered_or_not() {
    for line in &lines() {
        for n in [9, 10] {
            let effects = line.kind.effects(n);
            if effects.iter().map(|(_, count)| count).sum::<u64>() == 1 {
                continue;
            }
            let mut contents = honest(&lines());
            effects.iter().for_each(|(part, count)| {
                contents.parts.insert((*part, line.client, n), *count);
            });
            let (last, count) = effects.last().unwrap();
            contents.parts.insert((*last, line.client, n), count - 1);
            let error = judge(&mut lines(), &contents, SEED).unwrap_err();
            assert!(error.contains("half there"), "{error}");
        }
    }
}

#[test]
fn an_operation_done_twice_is_noticed_of_every_client() {
    for line in &lines() {
        let mut contents = honest(&lines());
        // What was under way is there; a counter that was raised twice is one further.
        apply(&mut contents, line, 10);
        let (part, count) = *line.kind.effects(10).last().unwrap();
        let is_counter = matches!(part, Part::Increment | Part::Update);
        let place = (part, line.client, if is_counter { 11 } else { 10 });
        *contents.parts.entry(place).or_default() += count;
        let error = judge(&mut lines(), &contents, SEED).unwrap_err();
        assert!(error.contains("times"), "{error}");
    }
}

#[test]
fn a_hole_and_money_from_nowhere_are_noticed() {
    let mut contents = honest(&lines());
    let mut sent = lines();
    sent.iter_mut().for_each(|line| line.sent = 12);
    let rows = sent.iter().find(|line| line.kind == Kind::PipelinedRows).unwrap();
    apply(&mut contents, rows, 11);
    let error = judge(&mut sent.clone(), &contents, SEED).unwrap_err();
    assert!(error.contains("11 is there, and 10 is not"), "{error}");
    let mut contents = honest(&lines());
    *contents.balances.get_mut(&0).unwrap() += 1;
    let error = judge(&mut lines(), &contents, SEED).unwrap_err();
    assert!(error.contains("the accounts have 16001"), "{error}");
    let mut contents = honest(&lines());
    *contents.balances.get_mut(&0).unwrap() += 1;
    *contents.balances.get_mut(&1).unwrap() -= 1;
    judge(&mut lines(), &contents, SEED).unwrap_err();
}

#[test]
fn a_number_that_watch_did_not_keep_is_noticed() {
    let broken: [fn(&mut Contents); 3] = [
        // Two clients have raised it from the same number.
        |contents| {
            let last = contents.watched;
            contents.marks.remove(&last);
            contents.marks.insert(last - 1, 2);
        },
        // An EXEC that answered null did something.
        |contents| contents.watched += 1,
        // One that was answered was lost.
        |contents| contents.watched -= 1,
    ];
    for broken in broken {
        let mut contents = honest(&lines());
        broken(&mut contents);
        let error = judge(&mut lines(), &contents, SEED).unwrap_err();
        assert!(error.starts_with("WATCH and EXEC raised a number to"), "{error}");
    }
}
