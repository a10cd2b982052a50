//! Names that were given up for the field's own terms: `docs/internals/glossary.md`.

use super::lexer::Token;
use super::{Project, Source, Violation, name};

/// Names in code, and what to say instead.
const NAMES: &[(&str, &str)] = &[
    ("Whereabouts", "`VersionRef`"),
    ("Located", "`ResolvedLocations`"),
    ("lead_on", "`relocate`"),
    ("lead_back", "`link_previous`"),
    ("near_bytes", "`in_place_bytes`"),
    ("near_place", "`value_location`"),
    ("bring_near", "`prefetch` and what"),
    ("for_each_near", "`for_each_prefetched`"),
    ("touch_places", "`prefetch_locations`"),
    ("touch_values", "`prefetch_values`"),
    ("Death", "`DeleteStamp`"),
    ("death", "`delete_stamp`"),
    ("DeadRows", "`DeleteBitmap`"),
    ("Terms", "`CommitOptions`"),
    ("Thrift", "`CollectionThreshold`"),
    ("Judged", "`SkipCache`"),
    ("Sweep", "`CompactionCursor`"),
    ("doom", "`mark_for_deletion`"),
    ("InTheWay", "`ConflictingRow`"),
    ("GoOn", "`CancellationCheck`"),
    ("Seat", "`ActiveSession`"),
    ("UnderWay", "`InFlight`"),
    ("AnswerRoom", "`ResultBudget`"),
    ("expect_room", "`reserve_quota`"),
    ("Turns", "`FairShare`"),
    ("Lingering", "`Spin`"),
    ("Gate", "`AccessControl`"),
    ("Pass", "`Authorizer`"),
    ("Admission", "`Authenticator`"),
    ("Walk", "`IndexOrderScan`"),
    ("Tested", "`Indexable`"),
    ("share_commit", "`coalesce`"),
];

/// The product's sources that the names are checked in.
const PLACES: [&str; 4] =
    ["crates/table/src/", "crates/db/src/", "crates/query/src/", "crates/server/src/"];

/// The rule about names.
#[must_use]
pub fn check_names(project: &Project) -> Vec<Violation> {
    let is_product =
        |source: &Source<'_>| PLACES.iter().any(|place| source.path.starts_with(place));
    let of = |source: Source<'_>| {
        let found = |token: Token<'_>| {
            let (_, term) = NAMES.iter().find(|(old, _)| *old == token.text)?;
            let message = format!("`{}` was given up, expected {term}", token.text);
            Some(Violation::new(source.path, token.line, message))
        };
        let code = source.code();
        name::declared(&code).into_iter().filter_map(found).collect::<Vec<_>>()
    };
    project.sources().filter(is_product).flat_map(of).collect()
}

/// The rule that a doc comment does not begin with "Likewise": it says what is alike.
#[must_use]
pub fn check_likewise(project: &Project) -> Vec<Violation> {
    let of = |source: Source<'_>| {
        let is_likewise = |token: &Token<'_>| {
            let text = token.text.trim_start_matches(['/', '!']).trim_start();
            token.is_comment() && token.text.starts_with("//") && text.starts_with("Likewise")
        };
        let message = "a comment begins with \"Likewise\", expected what it means here";
        let found = source.tokens().into_iter().filter(is_likewise);
        found.map(|token| Violation::new(source.path, token.line, message)).collect::<Vec<_>>()
    };
    project.sources().flat_map(of).collect()
}
