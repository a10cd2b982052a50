//! All commands, once: what they take, what they do to keys, how they are done. `COMMAND` and the
//! reference come from here.

use super::call::{Call, Outcome};
use super::protocol::Arguments;
use super::{
    client, config, describe, expiry, info, keys, manage, numbers, pubsub, set, strings,
    transactions, watch,
};
use Group::{Channels, Connection, Generic, Server, Text, Transactions};

/// What a command is about, as Redis groups them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Channels,
    Connection,
    Generic,
    Server,
    Text,
    Transactions,
}

impl Group {
    /// As `COMMAND DOCS` has it.
    pub fn name(self) -> &'static str {
        match self {
            Channels => "pubsub",
            Connection => "connection",
            Generic => "generic",
            Server => "server",
            Text => "string",
            Transactions => "transactions",
        }
    }
}

/// A command, or a subcommand.
#[derive(Debug)]
pub(super) struct Command {
    /// In small letters; a subcommand has that of its command and a `|` in front.
    pub name: &'static str,
    /// Its arguments, as people write them.
    pub syntax: &'static str,
    /// How many arguments it takes, its names among them; at least so many where it is negative.
    pub arity: i64,
    /// As `COMMAND` has them.
    pub flags: &'static [&'static str],
    /// The first key, the last, and the step between them.
    pub keys: (i64, i64, i64),
    pub group: Group,
    /// What it does.
    pub meaning: &'static str,
    pub run: fn(&mut Call<'_>) -> Outcome,
    /// What its first argument chooses from, by name.
    pub subcommands: &'static [Self],
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

    /// True when a client that has not been let in may send it.
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
        let is_ours = |flag: &str| matches!(flag, "long" | "no_multi" | "dangerous");
        self.flags.iter().copied().filter(move |flag| !is_ours(flag))
    }

    /// The categories that `COMMAND` tells, without the `@` in front, in the order of Redis.
    pub fn categories(&self) -> Vec<&'static str> {
        let is_keyspace = self.group == Generic || (self.group == Server && self.is_of_keys());
        let all = [
            (is_keyspace, "keyspace"),
            (self.has("readonly"), "read"),
            (self.has("write"), "write"),
            (self.group == Text, "string"),
            (self.has("fast"), "fast"),
            (!self.has("fast"), "slow"),
            (self.has("dangerous"), "dangerous"),
            (self.group == Connection, "connection"),
            (self.group == Channels, "pubsub"),
            (self.group == Transactions, "transaction"),
        ];
        all.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect()
    }

    /// Itself, and its subcommands.
    pub fn with_subcommands(&'static self) -> impl Iterator<Item = &'static Self> {
        std::iter::once(self).chain(self.subcommands)
    }

    /// Its name, without that of its command in front.
    pub fn last_name(&self) -> &'static str {
        self.name.rsplit('|').next().unwrap_or_default()
    }
}

const READ: &[&str] = &["readonly", "fast"];
const SLOW_READ: &[&str] = &["readonly"];
const LONG_READ: &[&str] = &["readonly", "long"];
const KEYS: &[&str] = &["readonly", "long", "dangerous"];
const WRITE: &[&str] = &["write", "fast"];
const SLOW_WRITE: &[&str] = &["write"];
const PUT: &[&str] = &["write", "denyoom", "fast"];
const SLOW_PUT: &[&str] = &["write", "denyoom"];
const ANY: &[&str] = &["fast"];
const SLOW: &[&str] = &[];
const LONG: &[&str] = &["long", "dangerous"];
const OPEN: &[&str] = &["no_auth", "fast"];
const SLOW_OPEN: &[&str] = &["no_auth"];
const QUEUE: &[&str] = &["no_multi", "fast"];
const ADMIN: &[&str] = &["write", "long", "dangerous"];
const LET_IN: &[&str] = &["no_auth", "long", "fast"];
const DO_QUEUE: &[&str] = &["no_multi", "long"];
const NONE: (i64, i64, i64) = (0, 0, 0);
const ONE: (i64, i64, i64) = (1, 1, 1);
const ALL: (i64, i64, i64) = (1, -1, 1);
const PAIRS: (i64, i64, i64) = (1, -1, 2);

macro_rules! commands {
    ($($name:literal $syntax:literal $arity:literal $flags:ident $keys:tt $group:ident $run:path,
        $meaning:literal $(=> $subcommands:ident)?;)*) => {
        &[$(Command {
            name: $name,
            syntax: $syntax,
            arity: $arity,
            flags: $flags,
            keys: $keys,
            group: $group,
            meaning: $meaning,
            run: $run,
            subcommands: commands!(@subcommands $($subcommands)?),
        }),*]
    };
    (@subcommands) => { &[] };
    (@subcommands $subcommands:ident) => { $subcommands };
}

#[rustfmt::skip]
const CLIENT: &[Command] = commands! {
    "client|getname" "" 2 SLOW NONE Connection client::name, "the name of the connection";
    "client|help" "" 2 SLOW NONE Connection describe::help, "the subcommands";
    "client|id" "" 2 SLOW NONE Connection client::id, "the number of the connection";
    "client|no-evict" "ON | OFF"
        3 SLOW NONE Connection client::switch, "does nothing: no client is evicted";
    "client|no-touch" "ON | OFF"
        3 SLOW NONE Connection client::switch, "does nothing: no key is evicted";
    "client|setinfo" "LIB-NAME | LIB-VER text"
        4 SLOW NONE Connection client::set_info, "says what library the client uses; is not kept";
    "client|setname" "name" 3 SLOW NONE Connection client::set_name, "names the connection";
};

#[rustfmt::skip]
const COMMAND: &[Command] = commands! {
    "command|count" "" 2 SLOW_OPEN NONE Connection describe::count, "how many commands there are";
    "command|docs" "[name ...]"
        -2 SLOW_OPEN NONE Connection describe::documents, "what commands are for";
    "command|getkeys" "command argument ..."
        -4 SLOW_OPEN NONE Connection describe::keys, "the keys of a command with its arguments";
    "command|help" "" 2 SLOW_OPEN NONE Connection describe::help, "the subcommands";
    "command|info" "[name ...]"
        -2 SLOW_OPEN NONE Connection describe::some, "what `COMMAND` says, of some commands";
    "command|list" "[FILTERBY ACLCAT category | MODULE name | PATTERN pattern]"
        -2 SLOW_OPEN NONE Connection describe::list, "the names of commands";
};

#[rustfmt::skip]
const CONFIG: &[Command] = commands! {
    "config|get" "pattern ..."
        -3 SLOW NONE Server config::get, "what programs ask for that measure";
    "config|help" "" 2 SLOW NONE Server describe::help, "the subcommands";
};

#[rustfmt::skip]
const PUBSUB: &[Command] = commands! {
    "pubsub|channels" "[pattern]"
        -2 SLOW NONE Channels pubsub::channels, "the channels that are listened to";
    "pubsub|help" "" 2 SLOW NONE Channels describe::help, "the subcommands";
    "pubsub|numpat" "" 2 SLOW NONE Channels pubsub::patterns, "how many patterns there are";
    "pubsub|numsub" "[channel ...]"
        -2 SLOW NONE Channels pubsub::numbers, "how many listen to channels";
};

/// Every command, by name.
#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = commands! {
    "append" "key value" 3 PUT ONE Text strings::append, "puts bytes behind a value";
    "auth" "[database] token" -2 LET_IN NONE Connection manage::auth, "shows a token";
    "client" "" -2 SLOW NONE Connection manage::no_subcommand, "the connection" => CLIENT;
    "command" "" -1 SLOW_OPEN NONE Server describe::all, "this table" => COMMAND;
    "config" "" -2 SLOW NONE Server manage::no_subcommand, "the server" => CONFIG;
    "dbsize" "" 1 LONG_READ NONE Server keys::dbsize, "how many keys there are";
    "decr" "key" 2 PUT ONE Text numbers::decr, "takes 1 from a number";
    "decrby" "key number" 3 PUT ONE Text numbers::decrby, "takes from a number";
    "del" "key ..." -2 SLOW_WRITE ALL Generic keys::del, "removes keys, all in one commit";
    "discard" "" 1 QUEUE NONE Transactions transactions::discard, "forgets what was queued";
    "echo" "text" 2 ANY NONE Connection manage::echo, "says the same";
    "exec" "" 1 DO_QUEUE NONE Transactions transactions::exec,
        "does what was queued, in one commit";
    "exists" "key ..." -2 READ ALL Generic keys::exists, "how many of the keys there are";
    "expire" "key seconds [NX | XX | GT | LT]"
        -3 WRITE ONE Generic expiry::expire, "when a key ends, from now";
    "expireat" "key seconds [NX | XX | GT | LT]"
        -3 WRITE ONE Generic expiry::expire, "when a key ends, since 1970";
    "expiretime" "key" 2 READ ONE Generic expiry::time, "when a key ends, in seconds since 1970";
    "flushdb" "[ASYNC | SYNC]"
        -1 ADMIN NONE Server keys::flushdb, "removes all keys; needs the scope admin";
    "get" "key" 2 READ ONE Text strings::get, "a value";
    "getdel" "key" 2 WRITE ONE Text strings::getdel, "a value, which is removed";
    "getex" "key [EX seconds | PX ms | EXAT seconds | PXAT ms | PERSIST]"
        -2 WRITE ONE Text set::getex, "a value, which ends anew";
    "getrange" "key start end" 4 SLOW_READ ONE Text strings::getrange, "bytes of a value";
    "getset" "key value" 3 PUT ONE Text set::getset, "sets a value, tells the one before";
    "hello" "[2 | 3 [AUTH database token] [SETNAME name]]"
        -1 LET_IN NONE Connection manage::hello, "chooses the form of answers";
    "incr" "key" 2 PUT ONE Text numbers::incr, "adds 1 to a number";
    "incrby" "key number" 3 PUT ONE Text numbers::incrby, "adds to a number";
    "incrbyfloat" "key number"
        3 PUT ONE Text numbers::incrbyfloat, "adds to a number with a fraction";
    "info" "[section ...]" -1 LONG NONE Server info::info, "about the server";
    "keys" "pattern" 2 KEYS NONE Generic keys::keys,
        "all keys as a pattern says, sorted; no longer than a statement may take";
    "mget" "key ..." -2 READ ALL Text strings::mget, "values, all as of one commit";
    "mset" "key value ..." -3 SLOW_PUT PAIRS Text strings::mset, "sets values, all in one commit";
    "msetnx" "key value ..."
        -3 SLOW_PUT PAIRS Text strings::msetnx, "the same when none of the keys is there";
    "multi" "" 1 QUEUE NONE Transactions transactions::multi, "queues what follows";
    "persist" "key" 2 WRITE ONE Generic expiry::persist, "a key no longer ends";
    "pexpire" "key ms [NX | XX | GT | LT]"
        -3 WRITE ONE Generic expiry::expire, "EXPIRE in milliseconds";
    "pexpireat" "key ms [NX | XX | GT | LT]"
        -3 WRITE ONE Generic expiry::expire, "EXPIREAT in milliseconds";
    "pexpiretime" "key" 2 READ ONE Generic expiry::time, "EXPIRETIME in milliseconds";
    "ping" "[text]" -1 ANY NONE Connection manage::ping, "whether anybody is there";
    "psetex" "key ms value" 4 SLOW_PUT ONE Text set::setex, "SETEX in milliseconds";
    "psubscribe" "pattern ..." -2 ANY NONE Channels pubsub::psubscribe,
        "listens to channels as patterns say";
    "pttl" "key" 2 READ ONE Generic expiry::time, "TTL in milliseconds";
    "publish" "channel text" 3 ANY NONE Channels pubsub::publish,
        "tells the listeners of the moment; how many there are";
    "pubsub" "" -2 SLOW NONE Channels manage::no_subcommand, "the listeners" => PUBSUB;
    "punsubscribe" "[pattern ...]" -1 ANY NONE Channels pubsub::punsubscribe,
        "listens to them no longer";
    "quit" "" -1 OPEN NONE Connection manage::quit, "ends the connection";
    "randomkey" "" 1 LONG_READ NONE Generic keys::randomkey, "some key";
    "rename" "key new" 3 SLOW_PUT (1, 2, 1) Generic keys::rename, "gives a value another key";
    "renamenx" "key new" 3 PUT (1, 2, 1) Generic keys::rename, "the same when that is not there";
    "reset" "" 1 OPEN NONE Connection manage::reset, "as after connecting, with the same rights";
    "scan" "cursor [MATCH pattern] [COUNT number] [TYPE name]"
        -2 LONG_READ NONE Generic keys::scan, "some keys, and where to go on";
    "select" "number" 2 ANY NONE Connection manage::select, "chooses a database: a bucket";
    "set" "key value [NX | XX] [GET] [EX seconds | PX ms | EXAT seconds | PXAT ms | KEEPTTL]"
        -3 SLOW_PUT ONE Text set::set, "sets a value";
    "setex" "key seconds value" 4 SLOW_PUT ONE Text set::setex, "sets a value that ends";
    "setnx" "key value" 3 PUT ONE Text set::setnx, "sets a value when the key is not there";
    "setrange" "key offset value"
        4 SLOW_PUT ONE Text strings::setrange, "overwrites bytes of a value";
    "strlen" "key" 2 READ ONE Text strings::strlen, "the bytes of a value";
    "subscribe" "channel ..." -2 ANY NONE Channels pubsub::subscribe, "listens to channels";
    "touch" "key ..." -2 READ ALL Generic keys::exists, "how many of the keys there are";
    "ttl" "key" 2 READ ONE Generic expiry::time, "in how many seconds a key ends";
    "type" "key" 2 READ ONE Generic keys::kind, "`string` or `none`";
    "unlink" "key ..." -2 WRITE ALL Generic keys::del, "the same as DEL";
    "unsubscribe" "[channel ...]" -1 ANY NONE Channels pubsub::unsubscribe,
        "listens to them no longer";
    "unwatch" "" 1 ANY NONE Transactions watch::unwatch, "watches nothing any more";
    "watch" "key ..." -2 QUEUE ALL Transactions watch::watch,
        "EXEC does nothing when others change one of the keys";
};

/// What arguments ask for, a subcommand where there are any, and where its command is in the
/// table.
pub(super) fn asked(arguments: &Arguments<'_>) -> Option<(usize, &'static Command)> {
    let mut words = arguments.iter();
    let (position, command) = find(words.next()?)?;
    let Some(word) = words.next().filter(|_| !command.subcommands.is_empty()) else {
        return Some((position, command));
    };
    let is_named =
        |subcommand: &&Command| word.eq_ignore_ascii_case(subcommand.last_name().as_bytes());
    Some((position, command.subcommands.iter().find(is_named)?))
}

/// A command, or a subcommand with a `|` in its name.
pub(super) fn named(name: &[u8]) -> Option<&'static Command> {
    let words = name.splitn(2, |byte| *byte == b'|').map(std::borrow::Cow::Borrowed);
    asked(&words.collect())
        .map(|(_, command)| command)
        .filter(|command| command.name.len() == name.len())
}

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
