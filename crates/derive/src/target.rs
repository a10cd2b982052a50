//! What `ref` refers to, in the words that SQL has behind REFERENCES.

use esker_format::schema::{ReferenceAction, validate_name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{Error, LitStr, Result};

/// `users`, `users(mail) ON DELETE CASCADE ON UPDATE SET NULL`.
pub(crate) struct Target {
    pub table: String,
    /// The fields of that table; none for those of its key.
    columns: Vec<String>,
    on_delete: ReferenceAction,
    on_update: ReferenceAction,
}

impl Target {
    /// What a text says, of so many fields.
    pub fn parse(text: &LitStr, fields: usize) -> Result<Self> {
        let refused = |message: String| Error::new(text.span(), message);
        let expected = "expected a table and what becomes of the row when its row goes, such as \
                        `users(id) on delete cascade`";
        let written = text.value();
        let end = written.find(|c: char| c == '(' || c.is_whitespace());
        let (table, rest) = written.split_at(end.unwrap_or(written.len()));
        // A table may be one of a schema.
        for part in table.split('.') {
            validate_name("table", part).map_err(|e| refused(format!("{e}: {expected}")))?;
        }
        let mut rest = rest.trim_start();
        let mut columns = Vec::new();
        if let Some(inner) = rest.strip_prefix('(') {
            let (names, behind) = inner.split_once(')').ok_or_else(|| refused(expected.into()))?;
            for name in names.split(',').map(str::trim) {
                validate_name("field", name).map_err(|e| refused(e.to_string()))?;
                columns.push(name.to_owned());
            }
            rest = behind;
        }
        if !columns.is_empty() && columns.len() != fields {
            let found = columns.len();
            return Err(refused(format!(
                "expected as many fields of {table:?}, {fields}: {found}"
            )));
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        let mut target = Self {
            table: table.to_owned(),
            columns,
            on_delete: ReferenceAction::default(),
            on_update: ReferenceAction::default(),
        };
        let (mut words, mut seen) = (words.as_slice(), Vec::new());
        let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
        while let [on, when, action @ ..] = words {
            let length =
                if action.first().is_some_and(|a| is(a, "set") || is(a, "no")) { 2 } else { 1 };
            let (action, behind) = action.split_at_checked(length).unwrap_or_default();
            let found = ReferenceAction::from_name(&action.join(" ")).filter(|_| is(on, "on"));
            let found = found.ok_or_else(|| refused(expected.into()))?;
            if seen.iter().any(|seen: &&str| is(seen, when)) {
                return Err(refused(format!("`on {when}` is given twice")));
            }
            seen.push(when);
            match () {
                () if is(when, "delete") => target.on_delete = found,
                () if is(when, "update") => target.on_update = found,
                () => return Err(refused(expected.into())),
            }
            words = behind;
        }
        if words.is_empty() { Ok(target) } else { Err(refused(expected.into())) }
    }

    /// The declaration of a reference of some fields.
    pub fn declaration(&self, fields: &[String]) -> TokenStream {
        let Self { table, columns, .. } = self;
        let [on_delete, on_update] = [self.on_delete, self.on_update]
            .map(|action| Ident::new(&format!("{action:?}"), Span::call_site()));
        quote! {
            ::esker::record::RecordReference {
                fields: &[#(#fields),*],
                table: #table,
                columns: &[#(#columns),*],
                on_delete: ::esker::ReferenceAction::#on_delete,
                on_update: ::esker::ReferenceAction::#on_update,
            }
        }
    }
}
