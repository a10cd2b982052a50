//! TPC-H: its tables, their rows by the `tpchgen` crate, and its 22 queries.

mod data;
mod queries;

use std::path::Path;

use crate::workload::Kind::{Big, Date, Decimal, Int, Text};
use crate::workload::{Engine, Kind, Table, Workload};

const PRICE: Kind = Decimal(15);

/// The tables in the order of the specification.
const TABLES: &[Table] = &[
    Table {
        name: "part",
        columns: &[
            ("p_partkey", Big),
            ("p_name", Text),
            ("p_mfgr", Text),
            ("p_brand", Text),
            ("p_type", Text),
            ("p_size", Int),
            ("p_container", Text),
            ("p_retailprice", PRICE),
            ("p_comment", Text),
        ],
        key: &["p_partkey"],
    },
    Table {
        name: "supplier",
        columns: &[
            ("s_suppkey", Big),
            ("s_name", Text),
            ("s_address", Text),
            ("s_nationkey", Big),
            ("s_phone", Text),
            ("s_acctbal", PRICE),
            ("s_comment", Text),
        ],
        key: &["s_suppkey"],
    },
    Table {
        name: "partsupp",
        columns: &[
            ("ps_partkey", Big),
            ("ps_suppkey", Big),
            ("ps_availqty", Int),
            ("ps_supplycost", PRICE),
            ("ps_comment", Text),
        ],
        key: &["ps_partkey", "ps_suppkey"],
    },
    Table {
        name: "customer",
        columns: &[
            ("c_custkey", Big),
            ("c_name", Text),
            ("c_address", Text),
            ("c_nationkey", Big),
            ("c_phone", Text),
            ("c_acctbal", PRICE),
            ("c_mktsegment", Text),
            ("c_comment", Text),
        ],
        key: &["c_custkey"],
    },
    Table {
        name: "orders",
        columns: &[
            ("o_orderkey", Big),
            ("o_custkey", Big),
            ("o_orderstatus", Text),
            ("o_totalprice", PRICE),
            ("o_orderdate", Date),
            ("o_orderpriority", Text),
            ("o_clerk", Text),
            ("o_shippriority", Int),
            ("o_comment", Text),
        ],
        key: &["o_orderkey"],
    },
    Table {
        name: "lineitem",
        columns: &[
            ("l_orderkey", Big),
            ("l_partkey", Big),
            ("l_suppkey", Big),
            ("l_linenumber", Int),
            ("l_quantity", PRICE),
            ("l_extendedprice", PRICE),
            ("l_discount", PRICE),
            ("l_tax", PRICE),
            ("l_returnflag", Text),
            ("l_linestatus", Text),
            ("l_shipdate", Date),
            ("l_commitdate", Date),
            ("l_receiptdate", Date),
            ("l_shipinstruct", Text),
            ("l_shipmode", Text),
            ("l_comment", Text),
        ],
        key: &["l_orderkey", "l_linenumber"],
    },
    Table {
        name: "nation",
        columns: &[
            ("n_nationkey", Big),
            ("n_name", Text),
            ("n_regionkey", Big),
            ("n_comment", Text),
        ],
        key: &["n_nationkey"],
    },
    Table {
        name: "region",
        columns: &[("r_regionkey", Big), ("r_name", Text), ("r_comment", Text)],
        key: &["r_regionkey"],
    },
];

/// All of it at a scale, with the figures that are asked for.
pub fn workload(scale: f64) -> Workload {
    Workload {
        title: format!("TPC-H, scale factor {scale}"),
        tables: TABLES,
        questions: queries::all(scale),
        write: Box::new(move |directory: &Path| data::write(directory, scale)),
        planned: Vec::new(),
        beside: Engine::DuckDb,
        mean_most: match scale {
            ..=0.1 => Some(1.0),
            ..=1.0 => Some(1.5),
            _ => None,
        },
        ratio_most: Some(4.0),
    }
}
