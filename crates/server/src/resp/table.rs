//! All commands, once: what they take, what they do to keys, how they are done. `COMMAND` and the
//! reference come from here.

use super::call::{Call, Outcome};
use super::{expiry, keys, manage, numbers, set, strings, transactions, watch};

/// A command.
#[derive(Debug)]
pub(super) struct Command {
    pub name: &'static str,
    /// Its arguments, as people write them.
    pub syntax: &'static str,
    /// How many arguments it takes, its name among them; at least so many where it is negative.
    pub arity: i64,
    /// As `COMMAND` has them.
    pub flags: &'static [&'static str],
    /// The first key, the last, and the step between them.
    pub keys: (i64, i64, i64),
    /// What it does.
    pub meaning: &'static str,
    pub run: fn(&mut Call<'_>) -> Outcome,
}

impl Command {
    /// True when it takes so many arguments.
    pub fn takes(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if self.arity < 0 { count >= -self.arity } else { count == self.arity }
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    /// True when whoever has not been let in may ask it.
    pub fn is_open(&self) -> bool {
        self.has("no_auth")
    }

    /// True when it is done at once between MULTI and EXEC.
    pub fn is_about_queue(&self) -> bool {
        self.has("no_multi") || self.name == "quit" || self.name == "reset"
    }

    /// True when it begins what is queued, or ends it.
    pub fn bounds_queue(&self) -> bool {
        matches!(self.name, "multi" | "exec" | "discard" | "quit" | "reset")
    }

    /// True when it only reads entries.
    pub fn is_read(&self) -> bool {
        self.has("readonly") || self.name == "info"
    }

    /// True when it may change entries.
    pub fn is_write(&self) -> bool {
        self.has("write")
    }

    /// True when it reads or changes some entries, and does nothing else.
    pub fn is_of_keys(&self) -> bool {
        self.is_write() || self.has("readonly")
    }

    /// True when it may take long, or wait.
    pub fn is_long(&self) -> bool {
        self.has("long")
    }

    /// True when it may put entries.
    pub fn is_put(&self) -> bool {
        self.has("denyoom")
    }

    /// The flags that `COMMAND` tells.
    pub fn told_flags(&self) -> impl Iterator<Item = &'static str> {
        self.flags.iter().copied().filter(|flag| *flag != "long")
    }
}

const READ: &[&str] = &["readonly", "fast"];
const LONG_READ: &[&str] = &["readonly", "long"];
const WRITE: &[&str] = &["write", "fast"];
const PUT: &[&str] = &["write", "denyoom", "fast"];
const ANY: &[&str] = &["fast"];
const OPEN: &[&str] = &["no_auth", "fast"];
const QUEUE: &[&str] = &["no_multi", "fast"];
const NONE: (i64, i64, i64) = (0, 0, 0);
const ONE: (i64, i64, i64) = (1, 1, 1);
const ALL: (i64, i64, i64) = (1, -1, 1);
const PAIRS: (i64, i64, i64) = (1, -1, 2);

macro_rules! commands {
    ($($name:literal $syntax:literal $arity:literal $flags:ident $keys:tt $run:path,
        $meaning:literal;)*) => {
        &[$(Command {
            name: $name,
            syntax: $syntax,
            arity: $arity,
            flags: $flags,
            keys: $keys,
            meaning: $meaning,
            run: $run,
        }),*]
    };
}
const ADMIN: &[&str] = &["write", "long"];
const LET_IN: &[&str] = &["no_auth", "long"];
const DO_QUEUE: &[&str] = &["no_multi", "long"];

/// Every command, by name.
#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = commands! {
    "append" "key value" 3 PUT ONE strings::append, "puts bytes behind a value";
    "auth" "[database] token" -2 LET_IN NONE manage::auth, "shows a token";
    "client" "SETNAME name | GETNAME | ID | SETINFO field text | NO-EVICT word | NO-TOUCH word"
        -2 ANY NONE manage::client, "names the connection";
    "command" "[COUNT | LIST | DOCS | INFO name ...]" -1 OPEN NONE manage::command, "this table";
    "config" "GET pattern ..." -2 ANY NONE manage::config, "what programs ask for that measure";
    "dbsize" "" 1 LONG_READ NONE keys::dbsize, "how many keys there are";
    "decr" "key" 2 PUT ONE numbers::decr, "takes 1 from a number";
    "decrby" "key number" 3 PUT ONE numbers::decrby, "takes from a number";
    "del" "key ..." -2 WRITE ALL keys::del, "removes keys, all in one commit";
    "discard" "" 1 QUEUE NONE transactions::discard, "forgets what was queued";
    "echo" "text" 2 ANY NONE manage::echo, "says the same";
    "exec" "" 1 DO_QUEUE NONE transactions::exec, "does what was queued, in one commit";
    "exists" "key ..." -2 READ ALL keys::exists, "how many of the keys there are";
    "expire" "key seconds [NX | XX | GT | LT]"
        -3 WRITE ONE expiry::expire, "when a key ends, from now";
    "expireat" "key seconds [NX | XX | GT | LT]"
        -3 WRITE ONE expiry::expire, "when a key ends, since 1970";
    "expiretime" "key" 2 READ ONE expiry::time, "when a key ends, in seconds since 1970";
    "flushdb" "[ASYNC | SYNC]"
        -1 ADMIN NONE keys::flushdb, "removes all keys; needs the scope admin";
    "get" "key" 2 READ ONE strings::get, "a value";
    "getdel" "key" 2 WRITE ONE strings::getdel, "a value, which is removed";
    "getex" "key [EX seconds | PX ms | EXAT seconds | PXAT ms | PERSIST]"
        -2 WRITE ONE set::getex, "a value, which ends anew";
    "getrange" "key start end" 4 READ ONE strings::getrange, "bytes of a value";
    "getset" "key value" 3 PUT ONE set::getset, "sets a value, tells the one before";
    "hello" "[2 | 3 [AUTH database token] [SETNAME name]]"
        -1 LET_IN NONE manage::hello, "chooses the form of answers";
    "incr" "key" 2 PUT ONE numbers::incr, "adds 1 to a number";
    "incrby" "key number" 3 PUT ONE numbers::incrby, "adds to a number";
    "incrbyfloat" "key number" 3 PUT ONE numbers::incrbyfloat, "adds to a number with a fraction";
    "info" "[section ...]" -1 ANY NONE manage::info, "about the server";
    "keys" "pattern" 2 LONG_READ NONE keys::keys,
        "all keys as a pattern says, sorted; no longer than a statement may take";
    "mget" "key ..." -2 READ ALL strings::mget, "values, all as of one commit";
    "mset" "key value ..." -3 PUT PAIRS strings::mset, "sets values, all in one commit";
    "msetnx" "key value ..."
        -3 PUT PAIRS strings::msetnx, "the same when none of the keys is there";
    "multi" "" 1 QUEUE NONE transactions::multi, "queues what follows";
    "persist" "key" 2 WRITE ONE expiry::persist, "a key no longer ends";
    "pexpire" "key ms [NX | XX | GT | LT]" -3 WRITE ONE expiry::expire, "EXPIRE in milliseconds";
    "pexpireat" "key ms [NX | XX | GT | LT]"
        -3 WRITE ONE expiry::expire, "EXPIREAT in milliseconds";
    "pexpiretime" "key" 2 READ ONE expiry::time, "EXPIRETIME in milliseconds";
    "ping" "[text]" -1 ANY NONE manage::ping, "whether anybody is there";
    "psetex" "key ms value" 4 PUT ONE set::setex, "SETEX in milliseconds";
    "pttl" "key" 2 READ ONE expiry::time, "TTL in milliseconds";
    "quit" "" -1 OPEN NONE manage::quit, "ends the connection";
    "randomkey" "" 1 LONG_READ NONE keys::randomkey, "some key";
    "rename" "key new" 3 PUT (1, 2, 1) keys::rename, "gives a value another key";
    "renamenx" "key new" 3 PUT (1, 2, 1) keys::rename, "the same when that is not there";
    "reset" "" 1 OPEN NONE manage::reset, "as after connecting, with the same rights";
    "scan" "cursor [MATCH pattern] [COUNT number] [TYPE name]"
        -2 LONG_READ NONE keys::scan, "some keys, and where to go on";
    "select" "number" 2 ANY NONE manage::select, "chooses a database: a bucket";
    "set" "key value [NX | XX] [GET] [EX seconds | PX ms | EXAT seconds | PXAT ms | KEEPTTL]"
        -3 PUT ONE set::set, "sets a value";
    "setex" "key seconds value" 4 PUT ONE set::setex, "sets a value that ends";
    "setnx" "key value" 3 PUT ONE set::setnx, "sets a value when the key is not there";
    "setrange" "key offset value" 4 PUT ONE strings::setrange, "overwrites bytes of a value";
    "strlen" "key" 2 READ ONE strings::strlen, "the bytes of a value";
    "touch" "key ..." -2 READ ALL keys::exists, "how many of the keys there are";
    "ttl" "key" 2 READ ONE expiry::time, "in how many seconds a key ends";
    "type" "key" 2 READ ONE keys::kind, "`string` or `none`";
    "unlink" "key ..." -2 WRITE ALL keys::del, "the same as DEL";
    "unwatch" "" 1 ANY NONE watch::unwatch, "watches nothing any more";
    "watch" "key ..."
        -2 QUEUE ALL watch::watch, "EXEC does nothing when others change one of the keys";
};

/// A command by its name, and where it is in the table.
pub(super) fn find(name: &[u8]) -> Option<(usize, &'static Command)> {
    const NAME_BYTES_MAX: usize = 16;
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let lower: &[u8] = lower;
    let found = COMMANDS.binary_search_by(|command| command.name.as_bytes().cmp(lower)).ok()?;
    COMMANDS.get(found).map(|command| (found, command))
}
