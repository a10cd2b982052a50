//! Types of other crates as fields, keys and values.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use esker::{DataType, Options, Query, Record, Value};
use jiff::{Timestamp, civil};
use rust_decimal::Decimal;
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Record)]
#[esker(index(day, at))]
struct Booking {
    #[esker(key)]
    id: Uuid,
    #[esker(key)]
    at: Timestamp,
    local: civil::DateTime,
    day: civil::Date,
    time: Option<civil::Time>,
    #[esker(unique)]
    made: DateTime<Utc>,
    made_local: Option<NaiveDateTime>,
    made_day: NaiveDate,
    made_time: NaiveTime,
    #[esker(type = "decimal(12,2)")]
    price: Decimal,
    #[esker(type = "decimal(38,10)")]
    rate: Option<Decimal>,
    #[esker(default = now)]
    written: Option<Timestamp>,
    #[esker(default = uuid)]
    token: Option<Uuid>,
}

fn booking() -> Booking {
    Booking {
        id: Uuid::from_u128(7),
        at: "2024-02-29T05:17:00.000001Z".parse().unwrap(),
        local: civil::date(2024, 2, 29).at(6, 17, 0, 500_000_000),
        day: civil::date(1815, 12, 10),
        time: Some(civil::time(23, 59, 59, 999_999_000)),
        made: "1969-12-31T23:59:59.999999Z".parse().unwrap(),
        made_local: Some("2024-02-29T05:17:00".parse().unwrap()),
        made_day: "2024-02-29".parse().unwrap(),
        made_time: "05:17:00.25".parse().unwrap(),
        price: "-19.95".parse().unwrap(),
        rate: Some("0.0000000001".parse().unwrap()),
        written: Some(Timestamp::UNIX_EPOCH),
        token: Some(Uuid::max()),
    }
}

#[test]
fn every_type_of_others_comes_back_as_it_was() {
    let db = Options::new().memory().unwrap();
    let table = db.create_table_of::<Booking>("bookings").unwrap();
    let types: Vec<_> = Booking::FIELDS.iter().map(|field| field.data_type.to_string()).collect();
    assert_eq!(
        types.join(" "),
        "uuid timestamp timestamp date time timestamp timestamp date time decimal(12,2) \
         decimal(38,10) timestamp uuid"
    );
    let bare = Booking { time: None, made_local: None, rate: None, ..booking() };
    let bare = Booking { id: Uuid::nil(), made: DateTime::UNIX_EPOCH, ..bare };
    table.insert_many(&[booking(), bare.clone()]).unwrap();
    assert_eq!(table.get((booking().id, booking().at)).unwrap(), Some(booking()));
    assert_eq!(db.query_as::<Booking>(&Query::table("bookings")).unwrap(), [booking(), bare]);
    let key = [booking().id.into(), Value::try_from(booking().at).unwrap()];
    let row = table.table().get(&key).unwrap().unwrap();
    assert_eq!(row.get("price").map(ToString::to_string).as_deref(), Some("-19.95"));
    assert_eq!(Decimal::try_from(row.get("price").unwrap()).unwrap(), booking().price);
    let now = Booking { written: None, token: None, id: Uuid::from_u128(8), ..booking() };
    let now = Booking { made: DateTime::UNIX_EPOCH + chrono::TimeDelta::days(1), ..now };
    table.insert(&now).unwrap();
    let read = table.get((now.id, now.at)).unwrap().unwrap();
    assert!(read.written > Some(Timestamp::UNIX_EPOCH) && read.token.is_some());
}

#[test]
fn what_a_field_cannot_hold_is_refused_by_its_name() {
    let db = Options::new().memory().unwrap();
    let table = db.create_table_of::<Booking>("bookings").unwrap();
    let nanoseconds: Timestamp = "2024-02-29T05:17:00.000000001Z".parse().unwrap();
    let leap = NaiveTime::from_hms_milli_opt(23, 59, 59, 1_000).unwrap();
    for (wrong, expected) in [
        (
            Booking { at: nanoseconds, ..booking() },
            "field \"at\": expected whole microseconds, found 2024-02-29T05:17:00.000000001Z: \
             round it first",
        ),
        (
            Booking { made_time: leap, ..booking() },
            "field \"made_time\": expected a time without leap seconds, found 23:59:60",
        ),
        (
            Booking { price: "1.005".parse().unwrap(), ..booking() },
            "field \"price\": expected decimal(12,2), found decimal 1.005",
        ),
        (
            Booking { price: "10000000000".parse().unwrap(), ..booking() },
            "field \"price\": expected decimal(12,2), found decimal 10000000000",
        ),
    ] {
        assert_eq!(table.insert(&wrong).unwrap_err().to_string(), expected);
    }
    table.insert(&Booking { price: "1.500".parse().unwrap(), ..booking() }).unwrap();
    let error = table.get((booking().id, nanoseconds)).unwrap_err();
    assert!(error.to_string().contains("whole microseconds"), "{error}");
    assert_eq!(table.table().count().unwrap(), 1);
}

/// The rows before it come, the row that it is about is an error, and there the walk ends.
#[test]
fn a_walk_ends_with_what_a_type_does_not_have() {
    #[derive(Debug, Record)]
    struct Large {
        #[esker(type = "decimal(38,0)")]
        n: Decimal,
    }
    let db = Options::new().memory().unwrap();
    let schema = esker::Schema::builder().field("n", DataType::decimal(38, 0).unwrap());
    let table = db.create_table("t", schema.build().unwrap()).unwrap();
    for mantissa in [1, 2, 10i128.pow(37), 3] {
        table.insert(&[esker::Decimal::new(mantissa, 0).unwrap().into()]).unwrap();
    }
    let mut rows = table.typed::<Large>().unwrap().iter().unwrap();
    for n in [1, 2] {
        assert_eq!(rows.next().unwrap().unwrap().n, Decimal::from(n));
    }
    let error = rows.next().unwrap().unwrap_err().to_string();
    assert!(
        error.starts_with("field \"n\": expected decimal(38,0), found decimal 1000"),
        "{error}"
    );
    assert!(rows.next().is_none());
}
