//! What can be given on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgMatches, Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use esker_server::config::{KEYS, Key, parse_bytes};

use crate::units;

mod bucket;

pub(crate) use bucket::{BucketCommand, GetEntryArguments, PutEntryArguments, ScanArguments};

const EXIT_CODES: &str = "\
Servers:
  Commands that take the directory of a database, but restore, ask a server where its address is
  given in its place, or by --connect ADDRESS: HOST:PORT, esker://HOST:PORT, eskers://HOST:PORT
  (TLS by the certificates of the system; ?ca=FILE names others) or unix:PATH. ESKER_TOKEN is the
  token, ESKER_DATABASE the database.

Exit codes:
  0  done
  1  check has found a problem
  2  the command line, the query or the input does not fit; nothing was changed
  3  no such database, table, row or file
  4  another process has the database open, or changed the same rows, or a statement took
     longer than --timeout: try again
  5  a file of the database is damaged
  6  the machine failed: a full disk, a file that cannot be read or written";

/// An embeddable database for records: load a file, ask in SQL.
///
/// `esker DB` opens the shell, as `esker sql DB` does; `esker` alone one of a database in memory.
#[derive(Debug, Parser)]
#[command(name = "esker", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
#[command(override_usage = "esker [DB]\n       esker [OPTIONS] <COMMAND>")]
pub(crate) struct Arguments {
    /// Whether tables and errors on a terminal are coloured; unless given, not when NO_COLOR is set
    #[arg(long, value_enum, default_value = "auto", global = true, value_name = "WHEN")]
    pub(crate) color: ColorChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Load(Box<LoadArguments>),
    Export(ExportArguments),
    Sql(SqlArguments),
    Query(QueryArguments),
    Get(GetArguments),
    Insert(RowArguments),
    Put(RowArguments),
    Delete(DeleteArguments),
    Index(IndexArguments),
    /// Look at buckets and change them: keys and values, in the order of the keys
    ///
    /// A key or a value is text, or bytes as pairs of hexadecimal digits behind 0x; what is
    /// written out has the same form.
    #[command(subcommand)]
    Bucket(BucketCommand),
    Info(InfoArguments),
    Check(CheckArguments),
    Backup(BackupArguments),
    Restore(RestoreArguments),
    Clock(ClockArguments),
    Compact(CompactArguments),
    Recount(RecountArguments),
    Serve(ServeArguments),
    Quickstart(QuickstartArguments),
    /// Look after the tokens of a server
    #[command(subcommand)]
    Token(TokenCommand),
    /// Look at what a server would read
    #[command(subcommand)]
    Config(ConfigCommand),
    Completions(CompletionsArguments),
    /// Write the manual page, for man(1)
    Man,
}

/// Load files of CSV or JSON (plain, gzip or zstd) into a table: all rows or none
///
/// How CSV is written is found out from the start of each file, and shown. The types come from
/// --schema, or are inferred and shown first: from all rows up to 64 MiB of text; beyond from the
/// first 100,000, and from all rows once one does not fit. A row that does not fit stops the load
/// with its line, column, value and reason, and nothing is loaded: a table that it made is gone
/// again, a database that it made stays, empty.
#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// The directory of the database; made when there is none
    pub(crate) db: PathBuf,
    /// The table; made when there is none
    pub(crate) table: String,
    /// The files, one after the other, or patterns of their names, such as 'data/*.csv'; - for
    /// standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// How rows are written; by the name of the file unless given: .csv, .tsv, .tab, .ndjson,
    /// .jsonl, .json, .geojson, with .gz or .zst behind it
    #[arg(long, value_enum)]
    pub(crate) format: Option<InputFormat>,
    /// The fields, such as 'id i64 not null, name text, primary key (id)'; as many as a file of CSV
    /// has columns name these. What the file has beside is inferred, unless --unknown says
    /// otherwise
    #[arg(long, value_name = "FIELDS")]
    pub(crate) schema: Option<String>,
    /// The fields of the primary key; without it, keys are generated
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// An index of the table that is made, such as 'city, age desc', 'by_age (age)' or
    /// 'unique mail'; repeat it for more
    #[arg(long = "index", value_name = "FIELDS")]
    pub(crate) indexes: Vec<String>,
    /// Inferred fields that have a value in every row are not null
    #[arg(long)]
    pub(crate) strict: bool,
    /// What becomes of a column of CSV, or a member of a JSON row, that the schema does not name:
    /// error, ignore, or the name of a field of type json that takes all of a row's. Unless given,
    /// its type is inferred, of a new table; of one that exists, it is an error
    #[arg(long, value_name = "error|ignore|FIELD")]
    pub(crate) unknown: Option<String>,
    #[command(flatten)]
    pub(crate) text: TextArguments,
    /// Where the rows are in a document of JSON, such as $.features
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// How dates and times are written beside the usual way, such as %d/%m/%Y or
    /// '%m/%d/%Y %I:%M %p'; repeat it for more
    #[arg(long = "date-format", value_name = "FORMAT")]
    pub(crate) date_formats: Vec<String>,
    /// How much of a pipe is kept in the directory for temporary files to infer types from
    #[arg(long, value_name = "SIZE", default_value = "64GiB", value_parser = parse_bytes)]
    pub(crate) spool_limit: u64,
    /// Add to a table that exists
    #[arg(long)]
    pub(crate) append: bool,
    /// What happens to a row whose key exists, in the table or in an earlier row
    #[arg(long, value_enum, default_value = "error")]
    pub(crate) on_duplicate: OnDuplicate,
    /// What happens at a row that does not fit
    #[arg(long, value_enum, default_value = "stop")]
    pub(crate) on_error: OnError,
    /// Where rows that do not fit are written, as CSV of file, line, reason and row; it must not
    /// exist yet
    #[arg(long, value_name = "FILE")]
    pub(crate) rejects: Option<PathBuf>,
}

/// How CSV is written, where that is not found out.
#[derive(Debug, Args)]
pub(crate) struct TextArguments {
    /// A spelling of NULL in CSV, in place of the empty field; repeat it for more
    #[arg(long = "null", value_name = "TEXT")]
    pub(crate) nulls: Vec<String>,
    /// The character between fields of CSV; \t for a tab
    #[arg(long, value_name = "CHARACTER")]
    pub(crate) delimiter: Option<String>,
    /// The character around fields of CSV that need it; none for none
    #[arg(long, value_name = "CHARACTER")]
    pub(crate) quote: Option<String>,
    /// The character that makes the next one within quotes stand for itself; without it, quotes
    /// within quotes are doubled
    #[arg(long, value_name = "CHARACTER")]
    pub(crate) escape: Option<String>,
    /// The character that begins comment lines of CSV; none for none
    #[arg(long, value_name = "CHARACTER")]
    pub(crate) comment: Option<String>,
    /// The first line of CSV is a row, not the names of the columns
    #[arg(long)]
    pub(crate) no_header: bool,
    /// The first line of CSV names the columns, whatever it looks like
    #[arg(long, conflicts_with = "no_header")]
    pub(crate) header: bool,
    /// How many lines at the start of a file are passed over
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    pub(crate) skip: u64,
    /// The names of the columns of CSV, in place of those in the header if there is one
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// What stands before the fraction of a number in CSV: a point, or a comma
    #[arg(long, value_name = "CHARACTER", default_value = ".")]
    pub(crate) decimal: String,
}

/// Serve a database by the wire protocol and HTTP until it is interrupted
///
/// Prints where it listens once it is ready. A HUP signal makes it read configuration, tokens and
/// certificates again. Interrupted, it takes no more requests, answers those under way, and closes
/// the database. A client shows a token, made by `esker token create`; --trust-local lets those on
/// this machine in without one.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The directory of the database; made when there is none
    pub(crate) db: Option<PathBuf>,
    /// A file with what else could be given, as TOML; `config show` writes one
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) flags: ServeFlags,
}

/// The keys of the configuration that are given as flags.
#[derive(Debug, Default)]
pub(crate) struct ServeFlags(pub(crate) Vec<(&'static str, String)>);

impl Args for ServeFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        KEYS.iter().fold(command, |command, key| command.arg(flag_of(key)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

fn flag_of(key: &'static Key) -> Arg {
    let flag = Arg::new(key.name).long(key.flag()).help(key.meaning);
    let flag = flag.value_name(if key.is_switch() { "true|false" } else { "VALUE" });
    // The way in that is used most has a short name.
    let flag = match key.name {
        "wire.listen" => flag.alias("listen"),
        "wire.unix" => flag.alias("unix"),
        _ => flag,
    };
    if key.is_switch() {
        flag.num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        flag
    }
}

impl FromArgMatches for ServeFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |key: &'static Key| {
            let value = matches.get_one::<String>(key.name)?;
            Some((key.name, value.clone()))
        };
        Ok(Self(KEYS.iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Write a table, or the answer to a query, to a file that `load` reads back
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// The table
    #[arg(required_unless_present = "sql")]
    pub(crate) table: Option<String>,
    /// A SELECT, in place of a table
    #[arg(long, value_name = "QUERY", conflicts_with = "table")]
    pub(crate) sql: Option<String>,
    /// The file; it must not exist yet. Standard output unless given
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How rows are written; by the name of the file unless given, CSV on standard output
    #[arg(long, value_enum)]
    pub(crate) format: Option<InputFormat>,
    /// The character between fields of CSV; \t for a tab. A comma unless given
    #[arg(long, value_name = "CHARACTER")]
    pub(crate) delimiter: Option<String>,
}

/// How rows are written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Comma-separated fields
    Csv,
    /// Fields with tabs between them
    Tsv,
    /// An object of JSON in each line
    Ndjson,
    /// One array of objects, or one object with the rows as its members, by key
    Json,
}

/// What happens to a row whose key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnDuplicate {
    /// The load stops, and nothing is loaded
    Error,
    /// The row is left out
    Skip,
    /// The row takes the place of the other
    Replace,
}

/// What happens at a row that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnError {
    /// The load stops, and nothing is loaded
    Stop,
    /// The row is left out and counted
    Skip,
}

/// Run SQL statements: those given, those on standard input, or, on a terminal, what is typed
///
/// SELECT, INSERT, UPDATE, DELETE, CREATE TABLE, DROP TABLE, TRUNCATE TABLE. Several stand with
/// semicolons between them; each is all or nothing, and the first that fails ends the run. What is
/// typed, and standard input, may have commands such as \\d, too: \\? lists them.
#[derive(Debug, Args)]
pub(crate) struct SqlArguments {
    /// The directory of the database; one in memory unless given. The shell makes it when there is
    /// none
    pub(crate) db: Option<PathBuf>,
    /// The statements
    pub(crate) statement: Option<String>,
    /// How to write the answer: a table on a terminal, else CSV, unless given
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// What stands for NULL in tables
    #[arg(long, value_name = "TEXT")]
    pub(crate) null: Option<String>,
    /// Say on standard error how many rows were scanned, and the time
    #[arg(long)]
    pub(crate) timing: bool,
    /// Show the plan and what each step took, in place of the answer
    #[arg(long, conflicts_with = "format")]
    pub(crate) explain: bool,
    /// Say what a statement would change, and change nothing
    #[arg(long, conflicts_with = "explain")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// How much a statement may take.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct LimitArguments {
    /// End a statement that takes longer, with nothing changed: 500ms, 30s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub(crate) timeout: Option<Duration>,
}

/// How to write an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns side by side
    Table,
    /// Comma-separated, NULL as nothing and an empty text as ""
    Csv,
    /// One object a row
    Json,
}

/// Show the row with a key
#[derive(Debug, Args)]
pub(crate) struct GetArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The values of the key, one a field; the row number where keys are generated
    #[arg(required = true, allow_negative_numbers = true)]
    pub(crate) key: Vec<String>,
    /// How to write the row: a table of names and values, unless given
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
}

/// Ask with a query as JSON: {"table": "t", "where": {"field": "f", "op": "gt", "value": 1}}
#[derive(Debug, Args)]
pub(crate) struct QueryArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// The query; - for standard input
    pub(crate) query: String,
    /// How to write the answer: a table on a terminal, else CSV, unless given
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Show the steps that answer the query, with rows and times, in place of the answer
    #[arg(long)]
    pub(crate) explain: bool,
    /// Say how long it took and how many rows were looked at
    #[arg(long)]
    pub(crate) timing: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// Add a row: `insert` refuses one whose key exists, `put` replaces it
#[derive(Debug, Args)]
pub(crate) struct RowArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The row: FIELD=VALUE for each field, or a JSON object. Fields left out have their default
    #[arg(required = true, allow_negative_numbers = true)]
    pub(crate) row: Vec<String>,
}

/// Remove the row with a key
#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The values of the key, one a field; the row number where keys are generated
    #[arg(required = true, allow_negative_numbers = true)]
    pub(crate) key: Vec<String>,
}

/// Show the tables, or the fields of one, with rows and sizes
#[derive(Debug, Args)]
pub(crate) struct InfoArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// The table
    pub(crate) table: Option<String>,
}

/// Read every byte of a database and check it
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// Where each problem is written with what can be done about it, as lines of JSON; it must
    /// not exist yet
    #[arg(long, value_name = "FILE")]
    pub(crate) repair_report: Option<PathBuf>,
}

/// Make a backup: a database of its own in another directory, as of one commit
///
/// Files that never change get a second name where that can be, which takes no time and no space;
/// else they are verified and copied. A backup is opened like any database.
#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// The directory of the backup; it must not exist, or be empty. Of a server, a name: the backup
    /// is made in the server's directory
    pub(crate) dir: PathBuf,
    /// An older backup of the same database: files that it has are linked from there
    #[arg(long, value_name = "DIR")]
    pub(crate) base: Option<PathBuf>,
    /// Copy what the base does not have, so that no file is shared with the database
    #[arg(long)]
    pub(crate) copy: bool,
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Make a database from a backup, which is checked first
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The directory of the backup
    pub(crate) backup: PathBuf,
    /// The directory of the new database; it must not exist, or be empty
    pub(crate) dir: PathBuf,
    /// Copy files, so that none is shared with the backup
    #[arg(long)]
    pub(crate) copy: bool,
    /// Only check the backup, and say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Look at the clock of a database, and say which one is right
///
/// A database goes by a date of its own, which follows the machine's clock. A clock that is
/// suddenly elsewhere is suspect: the date follows once it has stayed there for ten minutes.
#[derive(Debug, Args)]
pub(crate) struct ClockArguments {
    #[command(subcommand)]
    pub(crate) command: ClockCommand,
}

/// What is done to a clock.
#[derive(Debug, Subcommand)]
pub(crate) enum ClockCommand {
    /// Show elapsed time, date and the machine's clock
    Show {
        /// The directory of the database, or the address of a server
        db: PathBuf,
    },
    /// The machine's clock is right: go by it now
    ///
    /// Where it is behind the date, rows that had expired are ended: they do not come back.
    Confirm {
        /// The directory of the database, or the address of a server
        db: PathBuf,
        /// Only say how many rows would be ended
        #[arg(long)]
        dry_run: bool,
    },
    /// Take a date back that is ahead of the machine's clock, which is right
    ///
    /// Rows that had expired are ended: they do not come back.
    Reset {
        /// The directory of the database, or the address of a server
        db: PathBuf,
        /// Only say how many rows would be ended
        #[arg(long)]
        dry_run: bool,
        /// Within an hour of the date's last move forward: bring back what expired by that alone
        #[arg(long, conflicts_with = "dry_run")]
        restore: bool,
    },
}

/// Give the space of removed and replaced rows back
#[derive(Debug, Args)]
pub(crate) struct CompactArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// Only say what would be rewritten
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Count the rows of every table anew, and correct what was counted wrongly
#[derive(Debug, Args)]
pub(crate) struct RecountArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// Only say what is counted wrongly
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Give a table an index, beside readers and writers, or take one away
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct IndexArguments {
    #[command(subcommand)]
    pub(crate) action: Option<IndexAction>,
    #[command(flatten)]
    pub(crate) create: Option<CreateIndexArguments>,
}

#[derive(Debug, Args)]
pub(crate) struct CreateIndexArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The fields, the most significant one first; 'age desc' has the greatest value first
    #[arg(required = true)]
    pub(crate) fields: Vec<String>,
    /// Its name; after its fields unless given
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// No two rows may have the same values in these fields, unless one of them is NULL
    #[arg(long)]
    pub(crate) unique: bool,
    /// It finds the rows whose text has some part: LIKE, contains, regular expressions
    #[arg(long, conflicts_with = "unique")]
    pub(crate) trigram: bool,
    /// How it finds rows: ordered, trigram (parts of a text) or bitmap (a field of few values)
    #[arg(long, value_name = "KIND", value_parser = index_kind, conflicts_with = "trigram")]
    pub(crate) kind: Option<esker::IndexKind>,
}

fn index_kind(text: &str) -> Result<esker::IndexKind, String> {
    let expected = || "expected ordered, trigram or bitmap".to_owned();
    esker::IndexKind::from_name(text).ok_or_else(expected)
}

#[derive(Debug, Subcommand)]
pub(crate) enum IndexAction {
    /// Take an index from a table
    Drop(DropIndexArguments),
}

#[derive(Debug, Args)]
pub(crate) struct DropIndexArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The name of the index
    pub(crate) name: String,
}

/// Write what completes the program's commands in a shell
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Load a year of flights and ask eight questions
#[derive(Debug, Args)]
pub(crate) struct QuickstartArguments {
    /// Where to put the database
    #[arg(default_value = "flights.esker")]
    pub(crate) dir: PathBuf,
    /// Serve it then, to this machine alone and without a token, until Ctrl-C
    #[arg(long)]
    pub(crate) serve: bool,
}

/// Tokens say who may do what on a server
///
/// A server that runs sees a change within a second.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and write its text, once
    Create {
        /// The directory of the server
        dir: PathBuf,
        /// What it is for
        #[arg(long)]
        name: String,
        /// What it may do: read, write or admin, everywhere, or behind a colon in TENANT or
        /// TENANT/TABLE; repeat it for more
        #[arg(long = "scope", value_name = "SCOPE", required = true)]
        scopes: Vec<String>,
        /// How long it holds, such as 12h; for ever unless given
        #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
        expires: Option<Duration>,
    },
    /// List the tokens, without their texts
    List {
        /// The directory of the server
        dir: PathBuf,
    },
    /// Make a token in place of another, with the same name, scopes and time
    Rotate {
        /// The directory of the server
        dir: PathBuf,
        /// The token, as `list` names it
        id: String,
        /// How long the old one still holds
        #[arg(long, value_parser = units::parse_duration, default_value = "0s")]
        grace: Duration,
    },
    /// Remove a token: it opens nothing from then on
    Remove {
        /// The directory of the server
        dir: PathBuf,
        /// The token, as `list` names it
        id: String,
    },
}

/// Configurations of servers
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say whether a file is right
    Check {
        /// The file, as TOML
        file: PathBuf,
    },
    /// Write a file with every key and its default
    Show,
}
