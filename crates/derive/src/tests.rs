//! What is refused, and with what words; where, the tests of `esker` show.

use syn::DeriveInput;

fn refused(
    expand: fn(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
    code: &str,
) -> String {
    let input = syn::parse_str(code).unwrap();
    expand(&input).map(|code| code.to_string()).unwrap_err().to_string()
}

#[test]
fn a_record_that_is_none_is_refused() {
    for (code, expected) in [
        ("enum E { A }", "derive `esker::FieldType`"),
        ("struct S;", "named fields"),
        ("struct S(i64);", "named fields"),
        ("struct S { #[esker(skip)] a: i64 }", "at least one field"),
        ("struct S<T> { a: T }", "no parameters"),
        ("struct S<'a> { a: &'a str }", "no parameters"),
        ("#[esker(key)] struct S { a: i64 }", "`key` has no meaning here"),
        ("struct S { #[esker(kye)] a: i64 }", "unknown attribute `kye`; did you mean \"key\"?"),
        ("struct S { #[esker(key, key)] a: i64 }", "`key` is given twice"),
        ("struct S { #[esker(type = \"i65\")] a: i64 }", "unknown type \"i65\""),
        ("struct S { #[esker(type = \"decimal(40,2)\")] a: i64 }", "expected 1 to 38 digits"),
        ("struct S { #[esker(type = \"enum\")] a: String }", "labels(small, large)"),
        ("struct S { #[esker(type = i64)] a: i64 }", "expected string literal"),
        ("struct S { #[esker(max = 0)] a: String }", "expected a length of 1 to"),
        ("struct S { #[esker(labels(a, a))] a: String }", "label \"a\" is declared twice"),
        ("struct S { #[esker(labels())] a: String }", "at least one label"),
        ("struct S { #[esker(default = f())] a: i64 }", "expected a literal such as `3`"),
        ("struct S { #[esker(default = sequence())] a: i64 }", "expected `sequence(\"name\")`"),
        ("struct S { #[esker(skip, key)] a: i64 }", "`key` has no meaning beside `skip`"),
        ("struct S { #[esker(json, max = 3)] a: i64 }", "`max` has no meaning beside `json`"),
        ("struct S { #[esker(rename = \"\")] a: i64 }", "name"),
    ] {
        let error = refused(crate::record::expand, code);
        assert!(error.contains(expected), "{code}: {error}");
    }
}

#[test]
fn labels_that_are_none_are_refused() {
    for (code, expected) in [
        ("struct S { a: i64 }", "derive `esker::Record`"),
        ("enum E { A(i64) }", "a label has no fields"),
        ("enum E {}", "at least one label"),
        ("enum E { A, #[esker(rename = \"A\")] B }", "label \"A\" is declared twice"),
        ("enum E { #[esker(key)] A }", "`key` has no meaning here"),
    ] {
        let error = refused(crate::labels::expand, code);
        assert!(error.contains(expected), "{code}: {error}");
    }
}
