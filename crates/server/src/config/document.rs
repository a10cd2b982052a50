//! The keys, written for people.

use super::Config;
use super::key::{KEYS, Key, is_live};

/// `docs/reference/config.md`.
#[must_use]
pub fn document() -> String {
    let mut text = String::from(
        "# Configuration of the server

`esker serve DIR` reads `--config FILE` (TOML), then variables of the environment, then flags; what
is later weighs more. A key that nobody knows is an error that names the nearest one.
`esker config check FILE` says whether a file is right, and changes nothing; `esker config show`
writes a file with all defaults.

The key `http.listen` is `listen` in the table `[http]` of the file, the variable
`ESKER_HTTP_LISTEN`, and the flag `--http-listen`. Times have a unit (`500ms`, `30s`, `5m`, `24h`),
sizes may have one (`4096`, `64KiB`, `16MiB`, `4GiB`). This page is written by the code that reads
the keys, and a test compares them.

On a HUP signal a server reads its configuration, tokens and certificates again, and keeps its
connections. Keys with a star hold from then on; others that have changed are logged, and hold once
it starts anew. A configuration that is wrong is logged, and changes nothing.

| key | takes | default | meaning |
|---|---|---|---|
",
    );
    let config = Config::default();
    for key in KEYS {
        let (name, (takes, may_be_off), meaning) = (key.name, key.takes, key.meaning);
        let star = if is_live(name) { " \\*" } else { "" };
        let off = if may_be_off { ", or `off`" } else { "" };
        text +=
            &format!("| `{name}`{star} | {takes}{off} | `{}` | {meaning} |\n", (key.get)(&config));
    }
    text
}

/// A file with every key and its default.
#[must_use]
pub fn example() -> String {
    let config = Config::default();
    let mut text = String::new();
    let mut table = "";
    let (plain, inside): (Vec<&Key>, Vec<&Key>) =
        KEYS.iter().partition(|key| !key.name.contains('.'));
    for key in plain.into_iter().chain(inside) {
        let (own, name) = key.name.split_once('.').unwrap_or(("", key.name));
        if own != table {
            table = own;
            text += &format!("\n[{table}]\n");
        }
        text += &format!("{name} = {:?} # {}\n", (key.get)(&config), key.meaning);
    }
    text
}
