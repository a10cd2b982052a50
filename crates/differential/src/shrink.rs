//! Making a failing session small.

use crate::session::{Counts, Finding, Session};

/// The session without what it does not need to fail, and how it fails then.
pub(crate) fn shrink(session: &Session, finding: Finding) -> (Session, Finding) {
    let mut best = (session.clone(), finding);
    best.0.statements.truncate(best.1.at + 1);
    let mut step = best.0.statements.len().div_ceil(2);
    while step > 0 {
        let mut start = 0;
        while start < best.0.statements.len() {
            let mut less = best.0.clone();
            let end = less.statements.len().min(start + step);
            less.statements.drain(start..end);
            match less.run(&mut Counts::default()) {
                Err(finding) => {
                    less.statements.truncate(finding.at + 1);
                    best = (less, finding);
                }
                Ok(()) => start += step,
            }
        }
        step /= 2;
    }
    best
}

/// A session as a script.
pub(crate) fn script(session: &Session) -> String {
    let tables = session.tables.iter().map(|table| table.create(true) + ";\n");
    let statements = session.statements.iter().map(|statement| {
        let values: Vec<_> = statement.parameters.iter().map(ToString::to_string).collect();
        let note =
            if values.is_empty() { String::new() } else { format!(" -- {}", values.join(", ")) };
        format!("{};{note}\n", statement.esker)
    });
    tables.chain(statements).collect()
}
