//! Questions asked of a table without indexes.

use super::question::{Check, Class, Question};
use super::users::{
    AGE, BALANCE, BIO, EMAIL, EMAILS, HOURLY_RATE, RANK, SCORE, USER_ID, USERNAME, User, Which,
};

const fn class(name: &'static str, most_us: [f64; 2], questions: &'static [Question]) -> Class {
    Class { name, which: Which::Plain, most_us, questions }
}

const fn count(sql: &'static str, is_it: fn(&User) -> bool) -> Question {
    Question { sql, check: Check::Count(is_it) }
}

pub(super) const BIO_EQUAL: Class = class(
    "bio-eq",
    [300.0, 6_000.0],
    &[count(
        "SELECT count(*) FROM users WHERE bio = 'DevOps engineer automating everything'",
        |user| user.text(BIO) == "DevOps engineer automating everything",
    )],
);

pub(super) const BIO_CONTAINS: Class = class(
    "bio-contains",
    [300.0, 6_000.0],
    &[
        count("SELECT count(*) FROM users WHERE contains(bio, 'engineer')", |user| {
            user.text(BIO).contains("engineer")
        }),
        count("SELECT count(*) FROM users WHERE icontains(bio, 'DEVOPS')", |user| {
            user.text(BIO).contains("DevOps")
        }),
    ],
);

pub(super) const BIO_REGEX: Class = class(
    "bio-regex",
    [300.0, 6_000.0],
    &[count("SELECT count(*) FROM users WHERE bio ~ '(engineer|developer)'", |user| {
        ["engineer", "developer"].iter().any(|word| user.text(BIO).contains(word))
    })],
);

pub(super) const NAME_CONTAINS: Class = class(
    "username-contains",
    [3_000.0, 75_000.0],
    &[count("SELECT count(*) FROM users WHERE contains(username, 'baker')", |user| {
        user.text(USERNAME).contains("baker")
    })],
);

pub(super) const NAME_CONTAINS_ANY_CASE: Class = class(
    "username-icontains",
    [4_000.0, 100_000.0],
    &[count("SELECT count(*) FROM users WHERE icontains(username, 'BAKER')", |user| {
        user.text(USERNAME).contains("baker")
    })],
);

pub(super) const NAME_REGEX: Class = class(
    "username-regex",
    [40_000.0, 1_000_000.0],
    &[count("SELECT count(*) FROM users WHERE username ~ '^(alice|bob)\\.'", |user| {
        ["alice.", "bob."].iter().any(|word| user.text(USERNAME).starts_with(word))
    })],
);

pub(super) const FIELD_FIELD: Class = class(
    "field-field",
    [1_000.0, 25_000.0],
    &[
        count("SELECT count(*) FROM users WHERE age = rank", |user| {
            user.number(AGE) == user.number(RANK)
        }),
        count("SELECT count(*) FROM users WHERE age < rank", |user| {
            user.number(AGE) < user.number(RANK)
        }),
        count("SELECT count(*) FROM users WHERE username = email", |user| {
            user.text(USERNAME) == user.text(EMAIL)
        }),
        count("SELECT count(*) FROM users WHERE score < hourly_rate", |user| {
            user.number(SCORE) < user.number(HOURLY_RATE)
        }),
    ],
);

pub(super) const SUM: Class = class(
    "sum",
    [600.0, 15_000.0],
    &[
        Question { sql: "SELECT sum(balance) FROM users", check: Check::Sum(|_| true, BALANCE) },
        Question { sql: "SELECT sum(user_id) FROM users", check: Check::Sum(|_| true, USER_ID) },
        Question { sql: "SELECT avg(age) FROM users", check: Check::Mean(|_| true, AGE) },
    ],
);

pub(super) const MEAN_HALF: Class = class(
    "avg-half",
    [1_500.0, 40_000.0],
    &[Question {
        sql: "SELECT avg(balance) FROM users WHERE score > 50",
        check: Check::Mean(|user| user.number(SCORE) > 50.0, BALANCE),
    }],
);

pub(super) const MEAN_HUNDREDTH: Class = class(
    "avg-hundredth",
    [500.0, 10_000.0],
    &[Question {
        sql: "SELECT avg(balance) FROM users WHERE rank = 42",
        check: Check::Mean(|user| user.number(RANK) == 42.0, BALANCE),
    }],
);

pub(super) const GROUP_FEW: Class = class(
    "group-few",
    [2_000.0, 50_000.0],
    &[
        Question {
            sql: "SELECT active, count(*), avg(balance) FROM users GROUP BY active",
            check: Check::Groups(|user| u64::from(user.is_active())),
        },
        Question {
            sql: "SELECT age, count(*), avg(score) FROM users GROUP BY age",
            check: Check::Groups(|user| user.number(AGE).to_bits()),
        },
    ],
);

pub(super) const GROUP_TWO: Class = class(
    "group-two",
    [5_000.0, 125_000.0],
    &[Question {
        sql: "SELECT age, count(*), sum(balance), rank FROM users GROUP BY age, rank",
        check: Check::Groups(|user| (user.number(AGE) * 1_000.0 + user.number(RANK)).to_bits()),
    }],
);

pub(super) const GROUP_TEXT: Class = Class {
    name: "group-text",
    which: Which::Emails,
    most_us: [120_000.0, 4_000_000.0],
    questions: &[Question {
        sql: "SELECT email, count(*), sum(balance) FROM users GROUP BY email",
        check: Check::Groups(|user| {
            u64::try_from(user.whole(USER_ID) - FIRST_ID).unwrap_or_default() % EMAILS
        }),
    }],
};

/// The `user_id` of the first user.
const FIRST_ID: i128 = 100_000;
