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
        ("struct S { #[esker(index = 1)] a: i64 }", "expected `,`"),
        (
            "struct S { #[esker(index(a))] a: i64 }",
            "`index` of several fields stands at the struct",
        ),
        ("struct S { #[esker(unique, index)] a: i64 }", "`index` has no meaning beside `unique`"),
        ("struct S { #[esker(json, index)] a: i64 }", "`index` has no meaning beside `json`"),
        ("struct S { #[esker(skip, unique)] a: i64 }", "`unique` has no meaning beside `skip`"),
        ("#[esker(index)] struct S { a: i64 }", "expected the fields of the struct: `index(city"),
        ("#[esker(unique())] struct S { a: i64 }", "expected the fields of the struct: `unique("),
        ("#[esker(index(\"a\"))] struct S { a: i64 }", "expected the fields of the struct"),
        ("#[esker(index(nmae))] struct S { name: String }", "unknown field `nmae`; did you mean"),
        ("#[esker(index(a))] struct S { #[esker(skip)] a: i64, b: i64 }", "unknown field `a`"),
        ("#[esker(idx(a))] struct S { a: i64 }", "unknown attribute `idx`"),
        (
            "#[esker(index(a))] struct S { #[esker(unique)] a: i64 }",
            "an index on a is there already",
        ),
        (
            "struct S { #[esker(references = \"t\")] a: i64 }",
            "unknown attribute `references`: a reference is written `ref = \"table\"`",
        ),
        ("struct S { #[esker(ref = \"\")] a: i64 }", "expected a table and what becomes"),
        ("struct S { #[esker(ref = \"t on delete\")] a: i64 }", "expected a table and what"),
        ("struct S { #[esker(ref = \"t on delete set\")] a: i64 }", "expected a table and what"),
        ("struct S { #[esker(ref = \"t or cascade\")] a: i64 }", "expected a table and what"),
        ("struct S { #[esker(ref = \"t on insert cascade\")] a: i64 }", "expected a table and"),
        ("struct S { #[esker(ref = \"t on delete cascade ON DELETE restrict\")] a: i64 }", "twice"),
        (
            "#[esker(ref(a) = \"t\")] struct S { #[esker(ref = \"t\")] a: i64 }",
            "a reference of a to t is there already",
        ),
        ("struct S { #[esker(ref = \"t(x\")] a: i64 }", "expected a table and what becomes"),
        (
            "struct S { #[esker(ref = \"t(x, y)\")] a: i64 }",
            "expected as many fields of \"t\", 1: 2",
        ),
        ("struct S { #[esker(json, ref = \"t\")] a: i64 }", "`ref` has no meaning beside `json`"),
        ("struct S { #[esker(ref(a) = \"t\")] a: i64 }", "`ref` of several fields stands at"),
        ("#[esker(ref = \"t\")] struct S { a: i64 }", "fields of the struct: `ref(city, street) ="),
        ("#[esker(ref(a))] struct S { a: i64 }", "fields of the struct: `ref(city, street) ="),
        ("#[esker(ref(b) = \"t\")] struct S { a: i64 }", "unknown field `b`"),
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
        ("enum E<const N: usize> { A }", "labels have no parameters"),
        ("enum E { A, #[esker(rename = \"A\")] B }", "label \"A\" is declared twice"),
        ("enum E { #[esker(key)] A }", "`key` has no meaning here"),
    ] {
        let error = refused(crate::labels::expand, code);
        assert!(error.contains(expected), "{code}: {error}");
    }
}

#[test]
fn the_label_of_a_raw_name_is_the_name() {
    let input = syn::parse_str("struct S { #[esker(labels(r#type, r#match))] a: String }").unwrap();
    let code = crate::record::expand(&input).unwrap().to_string();
    assert!(code.contains(r#"labels (& ["type" , "match"])"#), "{code}");
}

#[test]
fn what_is_refused_leaves_a_record_that_others_can_use() {
    for (stand_in, code, expected) in [
        (
            crate::record::stand_in as fn(&DeriveInput) -> proc_macro2::TokenStream,
            "struct S { #[esker(kye)] a: i64 }",
            "impl :: esker :: Record for S {",
        ),
        (
            crate::record::stand_in,
            "struct S<'a, T: Copy, const N: usize> where T: Clone { a: &'a [T; N] }",
            "impl < 'a , T : Copy , const N : usize > :: esker :: Record for S < 'a , T , N > \
             where T : Clone {",
        ),
        (
            crate::labels::stand_in,
            "enum E<T> { #[esker(key)] A(T) }",
            "impl < T > :: esker :: FieldType for E < T > {",
        ),
    ] {
        let code = stand_in(&syn::parse_str(code).unwrap()).to_string();
        assert!(code.contains(expected), "{code}");
    }
    let error = syn::Error::new(proc_macro2::Span::call_site(), "one");
    let code = crate::or_stand_in(Err(error), || quote::quote!(impl A for B {})).to_string();
    assert_eq!(code.matches("compile_error").count(), 1, "{code}");
    assert!(code.ends_with("impl A for B { }"), "{code}");
}
