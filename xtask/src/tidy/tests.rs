//! Each rule fires on a small project that breaks it, and is silent on one that does not.

use super::*;
use length::functions;

fn messages(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    rule(&Project::of(files)).iter().map(ToString::to_string).collect()
}

#[track_caller]
fn assert_fires(rule: Rule, files: &[(&str, &str)], expected: &str) {
    let found = messages(rule, files);
    assert!(
        found.iter().any(|message| message.contains(expected)),
        "{expected:?} not in {found:?}"
    );
}

#[track_caller]
fn assert_silent(rule: Rule, files: &[(&str, &str)]) {
    let found = messages(rule, files);
    assert!(found.is_empty(), "{found:?}");
}

fn lines(source: &str) -> Vec<(String, usize)> {
    let source = Source { path: "a.rs", text: source };
    functions(&source).into_iter().map(|f| (f.name, f.lines)).collect()
}

#[test]
fn long_files_lines_and_functions() {
    let at_most = "//\n".repeat(length::FILE_LINES_MAX);
    assert_silent(length::check, &[("a.rs", &at_most)]);
    assert_fires(length::check, &[("a.rs", &format!("{at_most}//\n"))], "file has 701 lines");

    let wide = "é".repeat(length::LINE_COLUMNS_MAX);
    assert_silent(length::check, &[("a.rs", &wide)]);
    assert_fires(length::check, &[("a.rs", &format!("\n{wide}x"))], "a.rs:2: line has 101");

    let body = "    x();\n".repeat(length::FUNCTION_LINES_MAX - 2);
    assert_silent(length::check, &[("a.rs", &format!("fn f() {{\n{body}}}\n"))]);
    let long = format!("\nfn f() {{\n{body}//\n}}\n");
    assert_fires(length::check, &[("a.rs", &long)], "a.rs:2: function `f` has 71 lines");
}

#[test]
fn functions_end_at_their_own_brace() {
    let source = "fn a() {\n  let s = \"}\"; // }\n  if x { '}' } else { r#\"}\"# }\n}\nfn b() {}";
    assert_eq!(lines(source), [("a".to_owned(), 4), ("b".to_owned(), 1)]);
}

#[test]
fn only_functions_with_bodies_count() {
    let source = "trait T { fn a(&self) -> [u8; 4];\n fn b(&self) {\n} }\ntype F = fn(u8) -> u8;";
    assert_eq!(lines(source), [("b".to_owned(), 2)]);
}

#[test]
fn braces_in_a_signature_are_not_the_body() {
    let source =
        "fn a(x: [u8; { 4 }]) -> N<{ 2 }>\nwhere T: X, {\n}\nfn outer() {\n fn inner() {\n }\n}";
    let expected = [("a", 3), ("outer", 4), ("inner", 2)];
    assert_eq!(lines(source), expected.map(|(name, lines)| (name.to_owned(), lines)));
}

#[test]
fn functions_in_macros_count() {
    let source = "macro_rules! m { ($n:ident) => { fn $n() {\n\n} } }";
    assert_eq!(lines(source), [("n".to_owned(), 3)]);
}

#[test]
fn banned_names() {
    assert_fires(name::check, &[("a/src/row_util.rs", "")], "`util`, expected the noun");
    assert_fires(name::check, &[("a/src/helpers/x.rs", "")], "`helpers`, expected the noun");
    for source in [
        "let row_idx = 1;",
        "fn f(idx: u8) {}",
        "struct S { a: u8, pub idx: u8 }",
        "struct RowIdx;",
        "rows.map(|idx| 1)",
        "for idx in 0..3 {}",
        "const IDX: u8 = 1;",
    ] {
        assert_fires(name::check, &[("a.rs", source)], "expected `index`");
    }
}

#[test]
fn names_that_others_declared_are_not_banned() {
    let source = "let index = library::idx(\"idx\"); // idx\nuse other::{Idx}; x.idx();";
    assert_silent(name::check, &[("crates/a/src/index.rs", source)]);
}

#[test]
fn unfinished_work() {
    for source in ["// TODO: more", "/* a\n FIXME */", "//! XXX"] {
        assert_fires(unfinished::check, &[("a.rs", source)], "finish it");
    }
    assert_fires(unfinished::check, &[("a.rs", "/*\n TODO */")], "a.rs:2:");
    assert_fires(unfinished::check, &[("a.rs", "fn f() { todo!() }")], "`todo!`");
    assert_fires(unfinished::check, &[("a.rs", "unimplemented!(\"x\")")], "`unimplemented!`");
    assert_fires(
        unfinished::check,
        &[("a.rs", "#[test]\n#[ignore = \"slow\"]")],
        "a.rs:2: ignored",
    );
    assert_fires(unfinished::check, &[("a.md", "\nTODO")], "a.md:2:");
    assert_silent(unfinished::check, &[("a.rs", "\"TODO\"; // TODOS\nlet todo = ignore;")]);
}

const PACKAGE: &str = "[package]\nname = \"esker-log\"\n";

#[test]
fn unsafe_code_is_forbidden_outside_two_crates() {
    let manifest = ("crates/log/Cargo.toml", PACKAGE);
    let library = ("crates/log/src/lib.rs", "#![forbid(unsafe_code)]");
    assert_silent(safety::check, &[manifest, library]);
    for source in ["", "// #![forbid(unsafe_code)]", "#![deny(unsafe_code)]"] {
        let broken = [manifest, ("crates/log/src/lib.rs", source)];
        assert_fires(safety::check, &broken, "expected `#![forbid(unsafe_code)]`");
    }
    let program = [manifest, library, ("crates/log/src/main.rs", "")];
    assert_fires(safety::check, &program, "crates/log/src/main.rs:1");

    let arena = ("crates/arena/Cargo.toml", PACKAGE);
    assert_fires(safety::check, &[arena, ("crates/arena/src/lib.rs", "")], "`#![deny(");
    assert_fires(safety::check, &[("crates/log/src/a.rs", "unsafe fn f();")], "outside");
}

#[test]
fn unsafe_blocks_are_explained() {
    let path = "crates/arena/src/a.rs";
    for explained in [
        "// SAFETY: because.\nunsafe { f() }",
        "a;\n// SAFETY: because,\n// and so.\n#[allow(x)]\nlet y = unsafe { f() };",
        "// SAFETY: because.\nunsafe impl Send for X {}",
        "unsafe fn f() {}\n#[unsafe(no_mangle)]\nfn g() {} // \"unsafe {}\"",
    ] {
        assert_silent(safety::check, &[(path, explained)]);
    }
    for bare in [
        "unsafe { f() }",
        "// because.\nunsafe { f() }",
        "// SAFETY: of another.\nlet x = 1;\nlet y = unsafe { f() };",
        "unsafe impl Send for X {}",
    ] {
        assert_fires(safety::check, &[(path, bare)], "SAFETY");
    }
}

#[test]
fn files_that_nobody_names() {
    let manifest = ("crates/log/Cargo.toml", PACKAGE);
    let all = [
        manifest,
        ("crates/log/src/lib.rs", "mod a;\npub mod b { mod c; }\n#[path = \"d/e.rs\"]\nmod x;"),
        ("crates/log/src/a.rs", "#[cfg(test)]\nmod tests;"),
        ("crates/log/src/a/tests.rs", ""),
        ("crates/log/src/b/c/mod.rs", "mod f;"),
        ("crates/log/src/b/c/f.rs", ""),
        ("crates/log/src/d/e.rs", ""),
        ("crates/log/src/bin/tool.rs", ""),
        ("crates/log/tests/behaviour.rs", "mod shared;"),
        ("crates/log/tests/shared/mod.rs", ""),
        ("elsewhere/x.rs", ""),
    ];
    assert_silent(reachable::check, &all);
    for orphan in ["src/z.rs", "src/tests.rs", "src/b/d.rs", "tests/shared/y.rs"] {
        let path = format!("crates/log/{orphan}");
        let more = [&all[..], &[(path.as_str(), "")]].concat();
        assert_fires(reachable::check, &more, &format!("{path}: no `mod` line"));
    }
}

#[test]
fn a_module_in_a_comment_or_string_is_not_named() {
    let files = [
        ("crates/log/Cargo.toml", PACKAGE),
        ("crates/log/src/lib.rs", "// mod a;\nconst X: &str = \"mod a;\";"),
        ("crates/log/src/a.rs", ""),
    ];
    assert_fires(reachable::check, &files, "crates/log/src/a.rs: no `mod` line");
}

#[test]
fn programs_named_in_the_manifest_are_roots() {
    let manifest = format!("{PACKAGE}[[bin]]\nname = \"x\"\npath = \"src/deep/x.rs\"\n");
    let files = [("crates/log/Cargo.toml", manifest.as_str()), ("crates/log/src/deep/x.rs", "")];
    assert_silent(reachable::check, &files);
}

#[test]
fn dependencies_point_down() {
    let with = |rest: &str| format!("{PACKAGE}\n{rest}");
    for fine in [
        "[dependencies]\nesker-vfs.workspace = true\nserde = \"1\"",
        "[dependencies]\nesker-format = { path = \"../format\" }",
        "[features]\nesker-table = []",
        "[dev-dependencies]\nesker-log = { path = \".\", features = [\"sabotage\"] }",
    ] {
        assert_silent(manifest::check_layers, &[("crates/log/Cargo.toml", &with(fine))]);
    }
    for broken in [
        "[dependencies]\nesker-table.workspace = true",
        "[dependencies]\nesker = { path = \"../db\" }",
        "[dev-dependencies]\nesker-testkit.workspace = true",
        "[dependencies.esker-query]\nworkspace = true",
        "[target.'cfg(loom)'.dependencies]\nesker-cli = \"1\"",
        "[dependencies]\nesker-log.workspace = true",
    ] {
        let files = [("crates/log/Cargo.toml", with(broken))];
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        assert_fires(manifest::check_layers, &files, "must not depend on");
    }
    let unknown = [("crates/new/Cargo.toml", "[package]\nname = \"esker-new\"")];
    assert_fires(manifest::check_layers, &unknown, "no place in the list");
}

#[test]
fn each_crate_has_a_short_readme() {
    let manifest = ("crates/log/Cargo.toml", PACKAGE);
    assert_fires(manifest::check_readmes, &[manifest], "expected a README");
    let answer = "# log\n\n**Should I use this crate?** No.\n";
    assert_silent(manifest::check_readmes, &[manifest, ("crates/log/README.md", answer)]);
    let silent = [manifest, ("crates/log/README.md", "# log\n")];
    assert_fires(manifest::check_readmes, &silent, "Should I use");
    let long = format!("{answer}{}", "\n".repeat(30));
    assert_fires(manifest::check_readmes, &[manifest, ("crates/log/README.md", &long)], "33 lines");
}

#[test]
fn links_resolve() {
    let text = "# One title\n## `Two`, and\n[a](docs) [b](docs/x.md#one-title) [c](#two-and)\n\
        [d](https://x) [`e`](docs/x.md \"title\") `[f](none)`\n\
        ```\n[g](none)\n```\n[h]: docs/x.md\n";
    let files = [("README.md", text), ("docs/x.md", "# One title\n[up](../README.md)")];
    assert_silent(markdown::check, &files);
    for (broken, expected) in [
        ("\n[a](none.md)", "a.md:2: link to `none.md`: no such file"),
        ("[`a`](none.md)", "no such file"),
        ("[a]: none.md", "no such file"),
        ("[a](../none.md)", "no such file"),
        ("[a](#none)", "no such heading"),
        ("# One\n[a](b.md#one)", "no such heading"),
    ] {
        assert_fires(markdown::check, &[("a.md", broken), ("b.md", "# Two")], expected);
    }
}

#[test]
fn the_changelog_has_its_shape() {
    let buckets = "### Safety and performance\n### Features\n### Internals\n";
    let good =
        format!("# Changelog\n## Unreleased\n{buckets}## 0.1.0 (2026-01-31)\n### Features\n");
    assert_silent(changelog::check, &[("CHANGELOG.md", &good)]);
    assert_fires(changelog::check, &[], "expected a changelog");
    for (broken, expected) in [
        (good.replace("Unreleased", "0.2.0 (2026-02-01)"), "as the first release"),
        (good.replace("### Internals\n", ""), "in this order"),
        (good.replace("### Features", "### Fixes"), "in this order"),
        (good.replace("(2026-01-31)", ""), "expected `1.2.3"),
        (format!("## Unreleased\n### Internals\n{buckets}"), "in this order"),
    ] {
        assert_fires(changelog::check, &[("CHANGELOG.md", &broken)], expected);
    }
}

#[test]
fn large_files_and_paths_of_one_machine() {
    let large = "x".repeat(content::FILE_BYTES_MAX + 1);
    assert_fires(content::check_sizes, &[("a.csv", &large)], "bytes, expected at most");
    assert_silent(content::check_sizes, &[("a.csv", large.get(1..).unwrap())]);

    let (work, root, temporary) =
        (concat!("/", "work/x"), concat!("(/", "root/x)"), concat!("/", "tmp/x"));
    assert_fires(content::check_paths, &[("a.rs", work)], "path of one machine");
    assert_fires(content::check_paths, &[("a.toml", root)], "path of one machine");
    assert_fires(content::check_paths, &[("a.md", temporary)], "path of one machine");
    assert_silent(content::check_paths, &[("a.rs", temporary)]);
    assert_silent(content::check_paths, &[("a.md", &format!("net{work} ~{work} .{work}"))]);
}

#[test]
fn violations_name_their_place() {
    assert_eq!(Violation::new("a.rs", 3, "bad").to_string(), "a.rs:3: bad");
    assert_eq!(Violation::new("a.rs", 0, "bad").to_string(), "a.rs: bad");
}

const ROW: &str = "use crate::Error;
pub struct Row;
fn f(x: Option<u8>) -> u8 {
    assert!(
        x.is_some()
    );
    x.unwrap_or(1)
}
#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn t() { Some(1).unwrap_or(2); }
}
";

const TABLE: &str = "mod view;
pub use view::View;
fn g() { crate::row::f(None); }
fn h() { None.unwrap_or(3) } // default: none means three
";

const TREE: &[(&str, &str)] = &[
    ("crates/a/Cargo.toml", "[package]\nname = \"esker-a\"\n"),
    (
        "crates/a/src/lib.rs",
        "mod error;\nmod row;\nmod table;\n#[cfg(test)]\nmod models;\npub use error::Error;\n",
    ),
    ("crates/a/src/models.rs", "use crate::row::Row;\nfn model() {}\n"),
    ("crates/a/src/error.rs", "// nobody is told\npub struct Error;\n"),
    ("crates/a/src/row.rs", ROW),
    ("crates/a/src/table/mod.rs", TABLE),
    ("crates/a/src/table/view.rs", "use super::{super::row::Row, g};\npub struct View;\n"),
];

#[test]
fn a_tree_of_modules_leaves_tests_out() {
    let project = Project::of(TREE);
    let tree = module_tree::ModuleTree::load(&project, "crates/a/src/lib.rs");
    let modules: Vec<_> = tree.files().iter().map(|file| file.module.as_str()).collect();
    assert_eq!(modules, ["", "error", "row", "table", "table::view"]);
}

#[test]
fn imports_lead_to_the_file_that_has_the_name() {
    let project = Project::of(TREE);
    let tree = module_tree::ModuleTree::load(&project, "crates/a/src/lib.rs");
    let edges: Vec<Vec<usize>> =
        tree.edges().into_iter().map(|edges| edges.into_iter().collect()).collect();
    // A re-export is no edge; `crate::Error` leads to `error`, a path in code to `row`.
    assert_eq!(edges, [vec![], vec![], vec![1], vec![2], vec![2, 3]]);
    assert!(circle::circles(&tree.edges()).is_empty());
}

#[test]
fn a_circle_is_found_with_all_its_files() {
    let edges = |lists: &[&[usize]]| -> Vec<_> {
        lists.iter().map(|list| list.iter().copied().collect()).collect()
    };
    let found = circle::circles(&edges(&[&[1], &[2], &[0, 3], &[4], &[3], &[0]]));
    assert_eq!(found, [vec![0, 1, 2], vec![3, 4]]);
    assert!(circle::circles(&edges(&[&[1, 2], &[2], &[]])).is_empty());
}

#[test]
fn use_lines_are_read_with_groups_names_and_globs() {
    let source = Source {
        path: "a.rs",
        text: "pub(crate) use a::{b, c::{self, d as e}, f::*};\nuse super::super::g;\n",
    };
    let found: Vec<_> = import::imports(&source.code())
        .into_iter()
        .map(|import| (import.path.join("::"), import.name, import.is_public))
        .collect();
    let expected = [
        ("a::b", "b", true),
        ("a::c", "c", true),
        ("a::c::d", "e", true),
        ("a::f", "*", true),
        ("super::super::g", "g", false),
    ];
    assert_eq!(found, expected.map(|(path, name, public)| (path.to_owned(), name, public)));
}

#[test]
fn figures_leave_tests_and_assertions_out() {
    let project = Project::of(TREE);
    let tree = module_tree::ModuleTree::load(&project, "crates/a/src/lib.rs");
    let of = |path: &str| tree.files().iter().find(|file| file.path.ends_with(path)).unwrap();
    assert_eq!(of("row.rs").product.code_lines(), 5);
    assert_eq!(silent_default::silent_defaults(&of("row.rs").product).len(), 1);
    assert!(silent_default::silent_defaults(&of("table/mod.rs").product).is_empty());
    let archaic = word::archaic_lines(&of("error.rs").product);
    assert_eq!(archaic, [word::ArchaicLine { line: 1, word: "nobody" }]);
    assert_eq!(word::archaic("a toldness of Nobodys"), None);
}

#[test]
fn names_that_were_given_up_and_likewise() {
    let old = [("crates/db/src/a.rs", "struct Seat;\n")];
    assert_fires(old_word::check_names, &old, "a.rs:1: `Seat` was given up");
    assert_silent(old_word::check_names, &[("crates/db/src/a.rs", "use tokio::Seat;\n")]);
    assert_silent(old_word::check_names, &[("crates/cli/src/a.rs", "struct Seat;\n")]);
    let likewise = [("a.rs", "/// Likewise, for rows.\nfn f() {}\n")];
    assert_fires(old_word::check_likewise, &likewise, "a.rs:1: a comment begins");
    assert_silent(old_word::check_likewise, &[("a.rs", "// as before, likewise\n")]);
}

#[test]
fn statistics_have_a_line_for_each_crate() {
    let report = statistics::report(&Project::of(TREE));
    let line = report.lines().find(|line| line.starts_with("a ")).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    let expected = ["a", "16", "5", "4/6/14", "3", "1/1/6", "0", "of", "0", "1", "1", "0", "1"];
    assert_eq!(words, expected, "{report}");
    assert!(report.contains("1 tests"), "{report}");
}

#[test]
fn modules_point_down_their_list() {
    let project = Project::of(TREE);
    let check = |order: &[&str]| -> Vec<String> {
        let found = module_order::check_crate(&project, "crates/a/src/lib.rs", order);
        found.iter().map(ToString::to_string).collect()
    };
    assert!(check(&["error", "row", "table"]).is_empty());
    let found = check(&["error", "table", "row"]);
    let expected = "crates/a/src/table/mod.rs: `table` must not use `row`, which is above it";
    assert_eq!(found.first().map(String::as_str), Some(expected), "{found:?}");
    assert!(check(&["error", "row"])[0].contains("`table` has no place"));
}

#[test]
fn a_circle_of_too_many_files_is_refused_but_where_modules_descend() {
    let project = Project::of(&[
        ("crates/a/src/lib.rs", "mod row;\nmod table;\n"),
        ("crates/a/src/row.rs", "use crate::table::Table;\npub struct Row;\n"),
        ("crates/a/src/table.rs", "use crate::row::Row;\npub struct Table;\n"),
    ]);
    let check = |files_max, recursive| {
        let root = "crates/a/src/lib.rs";
        circle_limit::check_crate(&project, &circle_limit::Limit { root, files_max, recursive })
    };
    assert!(check(2, &[]).is_empty());
    assert!(check(1, &["row", "table"]).is_empty());
    let found = check(1, &["row"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].to_string().contains("2 files lead back to each other, at most 1 may"));
}
