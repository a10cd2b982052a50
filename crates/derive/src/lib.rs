//! The derive macros of Esker. What they understand is documented at the traits that they
//! implement: `esker::Record` and `esker::FieldType`.
//!
//! | module | what it defines |
//! |---|---|
//! | `record` | the code of a struct that is a row |
//! | `attributes` | what `#[esker(…)]` says of one field, and of the struct |
//! | `labels` | the code of an enum that is a field |
#![forbid(unsafe_code)]

mod attributes;
mod labels;
mod record;
mod target;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct with named fields a row: see the trait of the same name.
#[proc_macro_derive(Record, attributes(esker))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    or_stand_in(record::expand(&input), || record::stand_in(&input)).into()
}

/// Makes an enum without fields a field of labels: see the trait of the same name.
#[proc_macro_derive(FieldType, attributes(esker))]
pub fn derive_field_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    or_stand_in(labels::expand(&input), || labels::stand_in(&input)).into()
}

/// The code of a type, or the one error of what is wrong with it beside code that stands for it.
fn or_stand_in(
    code: syn::Result<proc_macro2::TokenStream>,
    stand_in: impl FnOnce() -> proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    code.unwrap_or_else(|e| {
        let mut code = e.to_compile_error();
        code.extend(stand_in());
        code
    })
}
