//! Arguments of `esker bucket`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::units;

#[derive(Debug, Subcommand)]
pub(crate) enum BucketCommand {
    /// List the buckets
    List {
        /// The directory of the database
        db: PathBuf,
    },
    /// Make an empty bucket
    Create {
        /// The directory of the database; made when there is none
        db: PathBuf,
        /// The bucket
        bucket: String,
        /// How long entries are there that are put without a time of their own, such as 12h
        #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
        ttl: Option<Duration>,
    },
    Get(GetEntryArguments),
    Put(PutEntryArguments),
    /// Remove an entry, or all whose keys begin so
    Delete {
        /// The directory of the database
        db: PathBuf,
        /// The bucket
        bucket: String,
        /// The key
        #[arg(required_unless_present = "prefix", allow_hyphen_values = true)]
        key: Option<String>,
        /// What the keys begin with
        #[arg(long, conflicts_with = "key", allow_hyphen_values = true)]
        prefix: Option<String>,
    },
    Scan(ScanArguments),
}

/// Write the value of a key
#[derive(Debug, Args)]
pub(crate) struct GetEntryArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// The bucket
    pub(crate) bucket: String,
    /// The key
    #[arg(allow_hyphen_values = true)]
    pub(crate) key: String,
    /// Write the bytes as they are, and no end of the line
    #[arg(long)]
    pub(crate) raw: bool,
}

/// Put an entry, in the place of the one with its key
#[derive(Debug, Args)]
pub(crate) struct PutEntryArguments {
    /// The directory of the database; made when there is none
    pub(crate) db: PathBuf,
    /// The bucket; made when there is none
    pub(crate) bucket: String,
    /// The key
    #[arg(allow_hyphen_values = true)]
    pub(crate) key: String,
    /// The value
    #[arg(allow_hyphen_values = true)]
    pub(crate) value: String,
    /// How long the entry is there, such as 12h; as the bucket says unless given
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    pub(crate) ttl: Option<Duration>,
    /// Change nothing, and fail, where the key is there
    #[arg(long)]
    pub(crate) if_absent: bool,
}

/// Write entries in the order of their keys, a line for each: key, tab, value
#[derive(Debug, Args)]
pub(crate) struct ScanArguments {
    /// The directory of the database
    pub(crate) db: PathBuf,
    /// The bucket
    pub(crate) bucket: String,
    /// Only those whose keys begin so
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) prefix: Option<String>,
    /// Begin at this key, which need not be there
    #[arg(long, value_name = "KEY", conflicts_with = "prefix", allow_hyphen_values = true)]
    pub(crate) from: Option<String>,
    /// At most so many
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<usize>,
    /// The last ones first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Only the keys
    #[arg(long)]
    pub(crate) keys: bool,
}
