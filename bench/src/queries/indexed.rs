//! Questions asked of a table with twelve indexes, and of one with deleted rows as well.

use super::question::{Check, Class, Question};
use super::users::{
    AGE, BALANCE, BIO, BIRTHDAY, CREATED_AT, EMAIL, HOURLY_RATE, LEVEL, RANK, SCORE, USER_ID,
    USERNAME, User, Which,
};

/// 1980-01-01, 1990-01-01, 2000-01-01 as days; 2024-02-01, 2024-06-01 as seconds.
const Y1980: f64 = 3_652.0;
const Y1990: f64 = 7_305.0;
const Y2000: f64 = 10_957.0;
const FEBRUARY: f64 = 1_706_745_600.0;
const JUNE: f64 = 1_717_200_000.0;

const fn class(name: &'static str, most_us: [f64; 2], questions: &'static [Question]) -> Class {
    Class { name, which: Which::Indexed, most_us, questions }
}

const fn deleted(name: &'static str, most_us: [f64; 2], questions: &'static [Question]) -> Class {
    Class { name, which: Which::Deleted, most_us, questions }
}

macro_rules! count {
    ($filter:literal, $is_it:expr) => {
        Question {
            sql: concat!("SELECT count(*) FROM users WHERE ", $filter),
            check: Check::Count($is_it),
        }
    };
}

macro_rules! find {
    ($fields:literal, $filter:literal, $is_it:expr) => {
        Question {
            sql: concat!("SELECT ", $fields, " FROM users WHERE ", $filter, " LIMIT 10"),
            check: Check::Rows(10, $is_it),
        }
    };
}

const EQUALS: &[Question] = &[
    count!("active = false", |user| !user.is_active()),
    count!("age = 30", |user| user.number(AGE) == 30.0),
    count!("user_id = 500000", |user| user.number(USER_ID) == 500_000.0),
    count!("rank = 42", |user| user.number(RANK) == 42.0),
    count!("score = 50", |user| user.number(SCORE) == 50.0),
    count!("level = 128", |user| user.number(LEVEL) == 128.0),
    count!("birthday = DATE '1985-05-15'", |user| user.number(BIRTHDAY) == 5_613.0),
    count!("created_at = TIMESTAMP '2024-06-01 00:00:00'", |user| {
        user.number(CREATED_AT) == JUNE
    }),
    count!("balance = 1000.00", |user| user.number(BALANCE) == 1_000.0),
    count!("hourly_rate = 100", |user| user.number(HOURLY_RATE) == 100.0),
    count!("username = 'alice.smith0'", |user| user.text(USERNAME) == "alice.smith0"),
    count!("email = 'alice0@gmail.com'", |user| user.text(EMAIL) == "alice0@gmail.com"),
];

const RANGES: &[Question] = &[
    count!("age > 50", |user| user.number(AGE) > 50.0),
    count!("age BETWEEN 30 AND 40", |user| (30.0..=40.0).contains(&user.number(AGE))),
    count!("user_id < 200000", |user| user.number(USER_ID) < 200_000.0),
    count!("rank BETWEEN 25 AND 75", |user| (25.0..=75.0).contains(&user.number(RANK))),
    count!("score > 50", |user| user.number(SCORE) > 50.0),
    count!("score > 40 AND score < 60", |user| {
        user.number(SCORE) > 40.0 && user.number(SCORE) < 60.0
    }),
    count!("level > 200", |user| user.number(LEVEL) > 200.0),
    count!("birthday <= DATE '1980-01-01'", |user| user.number(BIRTHDAY) <= Y1980),
    count!("birthday >= DATE '1990-01-01' AND birthday <= DATE '2000-01-01'", |user| {
        (Y1990..=Y2000).contains(&user.number(BIRTHDAY))
    }),
    count!("created_at < TIMESTAMP '2024-02-01 00:00:00'", |user| {
        user.number(CREATED_AT) < FEBRUARY
    }),
    count!("balance >= 0 AND balance <= 1000", |user| {
        (0.0..=1_000.0).contains(&user.number(BALANCE))
    }),
    count!("hourly_rate BETWEEN 50 AND 200", |user| {
        (50.0..=200.0).contains(&user.number(HOURLY_RATE))
    }),
    count!("username > 'm'", |user| user.text(USERNAME) > "m"),
    count!("email BETWEEN 'a' AND 'm'", |user| ("a"..="m").contains(&user.text(EMAIL))),
];

const NOT_EQUALS: &[Question] = &[
    count!("active <> false", User::is_active),
    count!("age <> 30", |user| user.number(AGE) != 30.0),
    count!("username <> 'alice.smith0'", |user| user.text(USERNAME) != "alice.smith0"),
    count!("age IN (20, 30, 40, 50)", |user| {
        [20.0, 30.0, 40.0, 50.0].contains(&user.number(AGE))
    }),
    count!("age NOT IN (20, 30, 40, 50)", |user| {
        ![20.0, 30.0, 40.0, 50.0].contains(&user.number(AGE))
    }),
    count!("user_id NOT IN (100000, 250000, 500000, 750000)", |user| {
        ![100_000.0, 250_000.0, 500_000.0, 750_000.0].contains(&user.number(USER_ID))
    }),
    count!("level IN (0, 128, 255)", |user| [0.0, 128.0, 255.0].contains(&user.number(LEVEL))),
    count!("hourly_rate IN (50, 100, 200)", |user| {
        [50.0, 100.0, 200.0].contains(&user.number(HOURLY_RATE))
    }),
    count!("username IN ('alice.smith0', 'bob.jones1')", |user| {
        ["alice.smith0", "bob.jones1"].contains(&user.text(USERNAME))
    }),
];

pub(super) const EQUAL: Class = class("count-eq", [20.0, 100.0], EQUALS);
pub(super) const RANGE: Class = class("count-range", [20.0, 200.0], RANGES);
pub(super) const NOT_EQUAL: Class = class("count-neq-in", [50.0, 300.0], NOT_EQUALS);
pub(super) const EQUAL_DELETED: Class = deleted("count-eq-deleted", [60.0, 1_000.0], EQUALS);
pub(super) const RANGE_DELETED: Class = deleted("count-range-deleted", [60.0, 2_000.0], RANGES);
pub(super) const NOT_EQUAL_DELETED: Class =
    deleted("count-neq-in-deleted", [150.0, 3_000.0], NOT_EQUALS);

pub(super) const STARTS: Class = class(
    "starts",
    [50.0, 200.0],
    &[
        count!("username LIKE 'alice%'", |user| user.text(USERNAME).starts_with("alice")),
        count!("username NOT LIKE 'a%'", |user| !user.text(USERNAME).starts_with('a')),
        count!("email LIKE 'alice%'", |user| user.text(EMAIL).starts_with("alice")),
    ],
);

pub(super) const CONTAINS: Class = class(
    "contains",
    [3_000.0, 75_000.0],
    &[
        count!("contains(username, 'baker')", |user| user.text(USERNAME).contains("baker")),
        count!("contains(email, '@gmail.com')", |user| user.text(EMAIL).contains("@gmail.com")),
    ],
);

pub(super) const ENDS: Class = class(
    "ends",
    [3_000.0, 75_000.0],
    &[
        count!("username LIKE '%99'", |user| user.text(USERNAME).ends_with("99")),
        count!("email LIKE '%@gmail.com'", |user| user.text(EMAIL).ends_with("@gmail.com")),
    ],
);

pub(super) const AND_OR: Class = class(
    "and-or",
    [500.0, 12_000.0],
    &[
        count!("age = 20 OR age = 30 OR age = 40 OR age = 50 OR age = 60", |user| {
            user.number(AGE) % 10.0 == 0.0 && user.number(AGE) < 70.0
        }),
        count!("active = false OR age > 70", |user| {
            !user.is_active() || user.number(AGE) > 70.0
        }),
        count!("age = 30 OR level = 5 OR rank = 7", |user| {
            user.number(AGE) == 30.0 || user.number(LEVEL) == 5.0 || user.number(RANK) == 7.0
        }),
        count!("active = false AND age > 50", |user| {
            !user.is_active() && user.number(AGE) > 50.0
        }),
        count!("active AND age >= 30 AND score >= 50", |user| {
            user.is_active() && user.number(AGE) >= 30.0 && user.number(SCORE) >= 50.0
        }),
        count!("age = 30 AND contains(bio, 'DevOps')", |user| {
            user.number(AGE) == 30.0 && user.text(BIO).contains("DevOps")
        }),
    ],
);

pub(super) const FIND: Class = class(
    "find-10",
    [200.0, 500.0],
    &[
        find!("username, age", "age = 30", |user| user.number(AGE) == 30.0),
        find!("username, age", "age NOT IN (20, 30, 40)", |user| {
            ![20.0, 30.0, 40.0].contains(&user.number(AGE))
        }),
        find!("username", "username LIKE 'alice%'", |user| {
            user.text(USERNAME).starts_with("alice")
        }),
        find!("username", "contains(username, 'baker')", |user| {
            user.text(USERNAME).contains("baker")
        }),
        find!("username", "length(username) = 12", |user| user.text(USERNAME).len() == 12),
        find!("username", "username ~ '^(alice|bob)\\.'", |user| {
            ["alice.", "bob."].iter().any(|word| user.text(USERNAME).starts_with(word))
        }),
        find!("username, score", "age = 30 AND score > 50", |user| {
            user.number(AGE) == 30.0 && user.number(SCORE) > 50.0
        }),
        find!("username", "active AND age >= 30 AND score >= 50", |user| {
            user.is_active() && user.number(AGE) >= 30.0 && user.number(SCORE) >= 50.0
        }),
        find!("username, birthday", "birthday BETWEEN '1990-01-01' AND '2000-01-01'", |user| {
            (Y1990..=Y2000).contains(&user.number(BIRTHDAY))
        }),
        find!("username, bio", "contains(bio, 'DevOps')", |user| {
            user.text(BIO).contains("DevOps")
        }),
        find!("username", "age < rank", |user| user.number(AGE) < user.number(RANK)),
    ],
);

pub(super) const GROUP_TEXT_10: Class = class(
    "group-text-10",
    [1_000.0, 2_000.0],
    &[
        Question {
            sql: "SELECT email, sum(balance) FROM users GROUP BY email LIMIT 10",
            check: Check::Rows(10, |_| true),
        },
        Question {
            sql: "SELECT username, count(*) FROM users GROUP BY username LIMIT 10",
            check: Check::Rows(10, |_| true),
        },
    ],
);

pub(super) const PAGE: Class = class(
    "page-100",
    [100.0, 200.0],
    &[
        Question {
            sql: "SELECT username, age FROM users ORDER BY age LIMIT 100",
            check: Check::Rows(100, |_| true),
        },
        Question {
            sql: "SELECT username, age FROM users ORDER BY age DESC LIMIT 100",
            check: Check::Rows(100, |_| true),
        },
        Question {
            sql: "SELECT username, score FROM users WHERE score > 50 ORDER BY score LIMIT 100",
            check: Check::Rows(100, |user| user.number(SCORE) > 50.0),
        },
        Question {
            sql: "SELECT username FROM users WHERE username > 'm' ORDER BY username LIMIT 100",
            check: Check::Rows(100, |user| user.text(USERNAME) > "m"),
        },
        Question {
            sql: "SELECT username, age FROM users WHERE active = false ORDER BY age LIMIT 100",
            check: Check::Rows(100, |user| !user.is_active()),
        },
    ],
);
