//! Users for tests and measurements: 13 fields, all made of the row's number.

use esker_format::{DataType, Decimal, Schema, Value};

use esker_query::Result;

const FIRST: [&str; 30] = [
    "alice", "bob", "carol", "dave", "eve", "frank", "grace", "hank", "iris", "jack", "kate",
    "leo", "mia", "nick", "olga", "paul", "quinn", "rose", "sam", "tina", "uma", "vic", "wendy",
    "xena", "yuri", "zara", "omar", "layla", "hassan", "fatima",
];
const LAST: [&str; 30] = [
    "smith", "jones", "brown", "wilson", "taylor", "clark", "hall", "lewis", "young", "king",
    "wright", "adams", "baker", "green", "hill", "moore", "white", "allen", "scott", "davis",
    "evans", "thomas", "roberts", "walker", "lee", "khan", "ali", "ahmed", "chen", "park",
];
const DOMAIN: [&str; 7] =
    ["gmail.com", "yahoo.com", "outlook.com", "company.org", "dev.io", "mail.co", "example.com"];
const BIO: [&str; 15] = [
    "Software engineer with a passion for open source",
    "Data scientist exploring ML frontiers",
    "Full-stack developer and coffee enthusiast",
    "DevOps engineer automating everything",
    "Product manager building user-centric tools",
    "Designer who codes on the side",
    "Student learning distributed systems",
    "Freelancer specializing in backend APIs",
    "Tech lead at a growing startup",
    "Retired professor turned hobbyist coder",
    "Cloud architect with AWS and GCP experience",
    "Mobile developer building cross-platform apps",
    "Security researcher and CTF player",
    "Database engineer optimizing queries",
    "Frontend developer obsessed with performance",
];

/// The fields.
///
/// # Errors
/// Never, while names and types are right.
pub fn schema() -> Result<Schema> {
    use DataType as T;
    let fields = [
        ("username", T::Text),
        ("email", T::Text),
        ("bio", T::Text),
        ("age", T::I32),
        ("user_id", T::I64),
        ("rank", T::I16),
        ("score", T::F64),
        ("active", T::Bool),
        ("level", T::U8),
        ("birthday", T::Date),
        ("created_at", T::Timestamp),
        ("balance", T::Decimal { precision: 12, scale: 2 }),
        ("hourly_rate", T::Decimal { precision: 19, scale: 4 }),
    ];
    let builder = fields.into_iter().fold(Schema::builder(), |b, (name, t)| b.field(name, t));
    Ok(builder.build()?)
}

/// One of some texts, in turn.
fn pick(texts: &'static [&'static str], i: i64) -> &'static str {
    let at = usize::try_from(i).unwrap_or_default() % texts.len();
    texts.get(at).copied().unwrap_or_default()
}

/// The user of a number from 0 on, one value a field.
#[must_use]
pub fn row(i: i64) -> Vec<Value> {
    let pick = |texts| pick(texts, i);
    let mix = (i * 2_654_435_761) & 0xffff_ffff;
    let (year, month, day) = (1960 + i % 46, i % 12 + 1, i % 28 + 1);
    let seconds = days(2024, month, day) * 86_400 + i % 24 * 3_600 + i % 60 * 60 + i * 7 % 60;
    let decimal =
        |mantissa, scale| Decimal::new(mantissa, scale).map_or(Value::Null, Value::Decimal);
    vec![
        format!("{}.{}{i}", pick(&FIRST), pick(&LAST)).into(),
        format!("{}{i}@{}", pick(&FIRST), pick(&DOMAIN)).into(),
        pick(&BIO).into(),
        Value::Int(18 + i % 60),
        Value::Int(100_000 + i),
        Value::Int(i % 100 + 1),
        Value::Float((mix % 1_000_000) as f64 / 10_000.0),
        Value::Bool(i % 7 != 0),
        Value::Uint((i % 256).unsigned_abs()),
        Value::Date(i32::try_from(days(year, month, day)).unwrap_or_default()),
        Value::Timestamp(seconds * 1_000_000),
        decimal(i128::from((mix >> 8) % 5_050_000 - 50_000), 2),
        decimal(i128::from((mix >> 16) % 49_000 + 1_000) * 100, 4),
    ]
}

/// Days since 1970-01-01, counted from the months before it in a year that begins in March.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let of_years = year * 365 + year / 4 - year / 100 + year / 400;
    of_years + (month * 153 + 2) / 5 + day - 719_469
}
