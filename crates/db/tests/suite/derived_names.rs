//! Code of the derive macros beside names that are those of others.

use esker::{Options, Record};

/// A struct that a macro writes, around types from where the macro is called.
macro_rules! pair {
    ($name:ident, $key:ty, $value:ty) => {
        #[derive(Clone, Debug, PartialEq, Record)]
        struct $name {
            #[esker(key)]
            key: $key,
            value: $value,
            #[esker(json)]
            document: $value,
            #[esker(skip)]
            skipped: $value,
        }
    };
}

pair!(Pair, i64, Option<String>);

#[test]
fn a_struct_that_a_macro_writes_around_types_of_its_caller() {
    let db = Options::new().memory().unwrap();
    let pairs = db.create_table_of::<Pair>("pairs").unwrap();
    let text = || Some("text".to_owned());
    let pair = Pair { key: 1, value: text(), document: text(), skipped: None };
    pairs.insert(&pair).unwrap();
    assert_eq!(pairs.get(1).unwrap(), Some(pair));
}

/// Everything that the prelude has is something else here.
#[allow(dead_code, non_camel_case_types, reason = "only there to be in the way")]
mod shadowed {
    pub struct Box;
    pub struct Default;
    pub struct Err;
    pub struct From;
    pub struct Into;
    pub struct None;
    pub struct Ok;
    pub struct Option;
    pub struct Record;
    pub struct Result;
    pub struct Some;
    pub struct String;
    pub struct Value;
    pub struct Vec;
    pub struct str;
    pub mod core {}
    pub mod std {}
    pub const FIELDS: usize = 16;
    pub const NAME: usize = 16;

    /// What the code calls, for every type.
    pub trait Others {
        fn field(&self) {}
        fn json(&self) {}
        fn read(&self) {}
        fn write(&self) {}
        fn labels(&self) {}
        fn key(&self) {}
        fn max(&self) {}
        fn to_value(&self) {}
        #[expect(clippy::wrong_self_convention, reason = "the name is what is tested")]
        fn from_value(&self) {}
    }

    impl<T: ?Sized> Others for T {}

    #[derive(Clone, Copy, Debug, PartialEq, esker::FieldType)]
    pub enum Size {
        None,
        Some,
        Ok,
        Err,
        r#Self_,
    }

    #[derive(Clone, Debug, PartialEq, esker::Record)]
    #[esker(index(r#type, values))]
    pub struct Row {
        #[esker(key)]
        pub id: [u8; FIELDS],
        pub r#type: ::std::string::String,
        pub values: ::std::option::Option<Size>,
        #[esker(labels(r#fn, plain), default = "fn")]
        pub label: ::std::option::Option<::std::string::String>,
        #[esker(json)]
        pub list: ::std::vec::Vec<i64>,
        #[esker(skip)]
        pub left_out: u8,
    }
}

#[test]
fn names_that_hide_those_of_the_prelude() {
    use shadowed::{Row, Size};
    let db = Options::new().memory().unwrap();
    let rows = db.create_table_of::<Row>("rows").unwrap();
    let row = Row {
        id: [7; 16],
        r#type: "a type".into(),
        values: Some(Size::None),
        label: Some("fn".into()),
        list: vec![1, 2],
        left_out: 0,
    };
    rows.insert(&Row { label: None, ..row.clone() }).unwrap();
    assert_eq!(rows.get([7; 16]).unwrap(), Some(row));
    assert!(rows.table().schema().position("type").is_some());
}

/// What is on its way out is stored all the same, and only its users are warned.
#[deny(deprecated)]
mod deprecated {
    #[derive(esker::FieldType)]
    pub enum State {
        Open,
        #[deprecated]
        Shut,
    }

    #[derive(esker::Record)]
    pub struct Door {
        #[esker(key)]
        pub id: i64,
        #[deprecated]
        pub state: State,
    }
}

#[test]
fn a_deprecated_field_is_stored_without_a_warning() {
    let names = deprecated::Door::FIELDS.iter().map(|field| field.name);
    assert_eq!(names.collect::<Vec<_>>(), ["id", "state"]);
}
