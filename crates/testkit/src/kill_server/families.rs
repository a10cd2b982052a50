//! Clients whose rows refer to rows: families, and members that go with them.
//!
//! Operation `n` of a client is one transaction. The draft that the one before it left goes, and
//! its members with it by `ON DELETE CASCADE`; family `n` comes with its members, and so does the
//! next draft, whose number is `-(n + 1)`. A partial unique index allows a client one draft.
//! Members have a number that the database computes.
//!
//! So after `k` operations a client has the families `0..k` and the draft `-k`, each with all of
//! its members, and no member is without a family.

use esker::Value;
use esker_client::Client;

use super::line::{Line, Part};
use super::{Error, Outcome};

/// How many members a family has.
pub(super) const MEMBERS: u64 = 3;

/// The tables, the indexes and the view that is asked.
pub(super) const DEFINITIONS: [&str; 5] = [
    "CREATE TABLE IF NOT EXISTS families (client i64, n i64, PRIMARY KEY (client, n))",
    "CREATE UNIQUE INDEX IF NOT EXISTS one_draft ON families (client) WHERE n < 0",
    "CREATE TABLE IF NOT EXISTS members (client i64, n i64, part i64, \
     doubled i64 GENERATED ALWAYS AS (part * 2) STORED, PRIMARY KEY (client, n, part), \
     FOREIGN KEY (client, n) REFERENCES families ON DELETE CASCADE)",
    "CREATE INDEX IF NOT EXISTS by_sum ON members (n + part) WHERE part > 1",
    "CREATE VIEW IF NOT EXISTS sizes AS SELECT f.client AS client, f.n AS n, \
     count(m.part) AS members FROM families f LEFT JOIN members m \
     ON m.client = f.client AND m.n = f.n AND m.doubled = m.part * 2 \
     GROUP BY f.client, f.n",
];

/// Works until the server has gone.
pub(super) fn work(line: &mut Line, address: &str) -> Outcome {
    let mut client = Client::connect(address)?;
    loop {
        let n = line.begin();
        client.begin()?;
        let of: Value = line.client.into();
        if n > 0 {
            let delete = "DELETE FROM families WHERE client = ? AND n = ?";
            client.sql(delete, &[of.clone(), (-n).into()])?;
        }
        for family in [n, -(n + 1)] {
            client.insert("families", &[vec![of.clone(), family.into()]])?;
            let insert = "INSERT INTO members (client, n, part) SELECT ?, ?, p \
                          FROM generate_series(1, ?) AS s (p)";
            client.sql(insert, &[of.clone(), family.into(), MEMBERS.into()])?;
        }
        client.commit()?;
        line.answer();
    }
}

/// The families of a client that are there.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    families: i64,
    /// The number of its draft; zero without one.
    draft: i64,
}

/// Families and members that are there, as parts of operations.
///
/// # Errors
/// A member without a family, one that an index does not have, or a wrong draft.
pub(super) fn read(
    client: &mut Client,
    lines: &[Line],
) -> Result<Vec<(Part, i64, i64, u64)>, Error> {
    let orphans = "SELECT count(*) FROM members WHERE NOT EXISTS \
                   (SELECT 1 FROM families f WHERE f.client = members.client AND f.n = members.n)";
    let [orphans] = one(client, orphans)?;
    if orphans != 0 {
        return Err(format!("{orphans} members have no family").into());
    }
    let both = "SELECT (SELECT count(*) FROM members WHERE part > 1 AND n + part > -1000000000), \
                (SELECT count(*) FROM members WHERE part BETWEEN 2 AND 3)";
    let [by_index, all] = one(client, both)?;
    if by_index != all {
        return Err(format!("{all} members, and {by_index} by an index").into());
    }
    let mut parts = Vec::new();
    let mut found = vec![Found::default(); lines.len()];
    for row in client.sql("SELECT client, n, members FROM sizes", &[])?.rows {
        let [of, n, members] = numbers(&row)?;
        let found = found.get_mut(usize::try_from(of)?).ok_or("a family of no client")?;
        if n < 0 {
            found.draft = n;
            if members.unsigned_abs() != MEMBERS {
                return Err(format!("draft {n} of client {of} has {members} members").into());
            }
            continue;
        }
        found.families += 1;
        parts.push((Part::Family, of, n, 1));
        parts.push((Part::Member, of, n, members.unsigned_abs()));
    }
    for (of, Found { families, draft }) in found.iter().enumerate() {
        if -families != *draft {
            return Err(format!("client {of} has {families} families and draft {draft}").into());
        }
    }
    Ok(parts)
}

fn one<const N: usize>(client: &mut Client, question: &str) -> Result<[i64; N], Error> {
    let rows = client.sql(question, &[])?.rows;
    numbers(rows.first().ok_or("no row")?)
}

fn numbers<const N: usize>(row: &[Value]) -> Result<[i64; N], Error> {
    super::contents::numbers(row)?.try_into().map_err(|_| "a row of other fields".into())
}
