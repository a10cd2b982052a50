//! Users: a key and 13 fields, some 340 bytes of JSON.

use crate::user_rows as users;

use super::table::{Member, Rows, Values};

pub(crate) const USERS: Rows = Rows {
    name: "users",
    schema: "key text(32) not null, username text(50) not null, email text(100) not null, \
             bio text(500) not null, age i32 not null, user_id i64 not null, rank i16 not null, \
             score f64 not null, active bool not null, level u8 not null, birthday date not null, \
             created_at timestamp not null, balance f64 not null, hourly_rate f64 not null, \
             primary key (key)",
    values,
    number: "user_id",
    number_of: |i| 100_000 + i,
};

fn values(i: u64) -> Values {
    let user = users::row(i64::try_from(i).unwrap_or_default());
    let at = |field: usize| user.get(field).map_or_else(String::new, ToString::to_string);
    let mix = i.wrapping_mul(2_654_435_761) & 0xffff_ffff;
    let cents = |cents: i64| format!("{:?}", cents as f64 / 100.0);
    let balance = i64::try_from((mix >> 8) % 5_050_000).unwrap_or(0) - 50_000;
    let rate = i64::try_from(((mix >> 16) & 0xffff) % 49_000).unwrap_or(0) + 1_000;
    let (month, day) = (i % 12 + 1, i % 28 + 1);
    vec![
        Member::text("key", format!("{:016x}{:016x}", crate::data::mix(i), crate::data::mix(!i))),
        Member::text("username", at(0)),
        Member::text("email", at(1)),
        Member::text("bio", at(2)),
        Member::bare("age", (18 + i % 60).to_string()),
        Member::bare("user_id", (100_000 + i).to_string()),
        Member::bare("rank", (i % 100 + 1).to_string()),
        Member::bare("score", format!("{:?}", (mix % 1_000_000) as f64 / 10_000.0)),
        Member::bare("active", (!i.is_multiple_of(7)).to_string()),
        Member::bare("level", (i % 256).to_string()),
        Member::text("birthday", format!("{}-{month:02}-{day:02}", 1960 + i % 46)),
        Member::text(
            "created_at",
            format!("2024-{month:02}-{day:02} {:02}:{:02}:{:02}", i % 24, i % 60, i * 7 % 60),
        ),
        Member::text("balance", cents(balance)),
        Member::text("hourly_rate", cents(rate)),
    ]
}

/// One of some texts, in turn.
pub(super) fn pick(texts: &'static [&str], i: u64) -> &'static str {
    let at = usize::try_from(i % texts.len() as u64).unwrap_or(0);
    texts.get(at).copied().unwrap_or_default()
}
