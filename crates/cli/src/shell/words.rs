//! What a word may become.

use std::collections::BTreeSet;

use esker::Schema;
use esker_query::model::{Aggregate, Function};

use super::commands::{self, COMMANDS, Completes};
use super::look::SETTINGS;

const KEYWORDS: &str = "ADD ALL ALTER AND AS ASC BETWEEN BY CASE CAST CHECK COLUMN CONFLICT \
CREATE CROSS DEFAULT DELETE DESC DISTINCT DO DROP ELSE END EXCEPT EXISTS EXPLAIN FALSE FETCH \
FILTER FIRST FROM FULL GROUP HAVING IF ILIKE IN INCREMENT INDEX INNER INSERT INTERSECT INTO IS \
JOIN KEY LAST LEFT LIKE LIMIT NATURAL NOT NOTHING NULL NULLS OFFSET ON OR ORDER OUTER PRIMARY \
RECURSIVE RENAME REPLACE RETURNING RIGHT SELECT SEQUENCE SET START TABLE THEN TO TRUE TRUNCATE \
TRY_CAST UNION UPDATE USING VALUE VALUES WHEN WHERE WITH WITHIN";

/// Names, beside the words of SQL.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    names: BTreeSet<String>,
}

impl Words {
    pub(super) fn add(&mut self, name: &str) {
        self.names.insert(name.to_owned());
    }

    /// The names of fields and indexes.
    pub(super) fn add_schema(&mut self, schema: &Schema) {
        schema.fields().iter().for_each(|field| self.add(&field.name));
        schema.row_indexes().for_each(|index| self.add(&index.name));
    }

    /// Where the word starts that ends at `position`, and what it may become: names first. A name
    /// that is no plain word is put in quotes.
    pub(super) fn complete(&self, line: &str, position: usize) -> (usize, Vec<String>) {
        let before = line.get(..position).unwrap_or(line);
        let is_command = before.trim_start().starts_with('\\');
        if let Some(found) = complete_command(before) {
            return found;
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let start = before.trim_end_matches(is_part).len();
        let word = before.get(start..).unwrap_or_default();
        if word.is_empty() {
            return (start, Vec::new());
        }
        let wanted = word.to_lowercase();
        let begins = |name: &&str| name.to_lowercase().starts_with(&wanted);
        let names = self.names.iter().map(String::as_str).filter(begins).map(quoted);
        let functions = Aggregate::ALL.into_iter().map(Aggregate::name).chain(Function::names());
        let functions = functions.filter(begins).map(|name| format!("{name}("));
        let upper = word.chars().all(char::is_uppercase);
        let keywords = KEYWORDS.split(' ').filter(begins);
        let keywords =
            keywords.map(|word| if upper { word.to_owned() } else { word.to_lowercase() });
        if is_command {
            return (start, names.collect());
        }
        (start, names.chain(keywords).chain(functions).collect())
    }
}

/// Commands, and what `\pset` sets.
fn complete_command(before: &str) -> Option<(usize, Vec<String>)> {
    let text = before.trim_start();
    let start = before.len() - text.len();
    if !text.starts_with('\\') {
        return None;
    }
    let Some((name, rest)) = text.split_once(char::is_whitespace) else {
        let names = COMMANDS.iter().flat_map(|command| command.names);
        let found = names.filter(|name| name.starts_with(text)).map(|name| (*name).to_owned());
        return Some((start, found.collect()));
    };
    match commands::find(name)?.completes {
        Completes::Names => None,
        Completes::Nothing => Some((before.len(), Vec::new())),
        Completes::Settings => {
            let found = SETTINGS.iter().map(|setting| setting.name);
            let found = found.filter(|name| name.starts_with(rest)).map(str::to_owned);
            Some((before.len() - rest.len(), found.collect()))
        }
    }
}

fn quoted(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
