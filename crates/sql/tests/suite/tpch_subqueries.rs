//! The queries of TPC-H that name fields of the query around a subquery, as its specification
//! writes them, on a few rows with answers worked out by hand.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use esker::Database;

use crate::correlated::{both, check_both};

fn tables() -> [Database; 2] {
    both(&[
        "CREATE TABLE region (r_regionkey i64 PRIMARY KEY, r_name text)",
        "CREATE TABLE nation (n_nationkey i64 PRIMARY KEY, n_name text, n_regionkey i64)",
        "CREATE TABLE supplier (s_suppkey i64 PRIMARY KEY, s_name text, s_address text, \
         s_nationkey i64, s_phone text, s_acctbal decimal(15,2), s_comment text)",
        "CREATE TABLE part (p_partkey i64 PRIMARY KEY, p_name text, p_mfgr text, p_brand text, \
         p_type text, p_size i64, p_container text)",
        "CREATE TABLE partsupp (ps_partkey i64, ps_suppkey i64, ps_availqty i64, \
         ps_supplycost decimal(15,2), PRIMARY KEY (ps_partkey, ps_suppkey))",
        "CREATE TABLE customer (c_custkey i64 PRIMARY KEY, c_phone text, c_acctbal decimal(15,2))",
        "CREATE TABLE orders (o_orderkey i64 PRIMARY KEY, o_custkey i64, o_orderstatus text, \
         o_orderdate date, o_orderpriority text)",
        "CREATE TABLE lineitem (l_orderkey i64, l_linenumber i64, l_partkey i64, l_suppkey i64, \
         l_quantity decimal(15,2), l_extendedprice decimal(15,2), l_shipdate date, \
         l_commitdate date, l_receiptdate date, PRIMARY KEY (l_orderkey, l_linenumber))",
        "INSERT INTO region VALUES (0, 'AFRICA'), (1, 'EUROPE')",
        "INSERT INTO nation VALUES (0, 'ALGERIA', 0), (1, 'FRANCE', 1), (2, 'GERMANY', 1), \
         (3, 'CANADA', 0), (4, 'SAUDI ARABIA', 0)",
        "INSERT INTO supplier VALUES (1, 'S1', 'A1', 1, 'P1', 100, 'C1'), \
         (2, 'S2', 'A2', 2, 'P2', 300, 'C2'), (3, 'S3', 'A3', 3, 'P3', 200, 'C3'), \
         (4, 'S4', 'A4', 4, 'P4', 50, 'C4'), (5, 'S5', 'A5', 4, 'P5', 10, 'C5'), \
         (6, 'S6', 'A6', 3, 'P6', 10, 'C6')",
        "INSERT INTO part VALUES (1, 'forest green', 'M1', 'Brand#23', 'LARGE BRASS', 15, \
         'MED BOX'), (2, 'forest red', 'M2', 'Brand#11', 'SMALL BRASS', 15, 'JUMBO PKG'), \
         (3, 'sky blue', 'M1', 'Brand#23', 'SMALL TIN', 15, 'MED BOX')",
        "INSERT INTO partsupp VALUES (1, 1, 100, 10), (1, 2, 50, 10), (1, 3, 66, 5), \
         (1, 6, 100, 5), (2, 1, 10, 7), (2, 2, 10, 8), (2, 3, 10, 3), (3, 3, 10, 1)",
        "INSERT INTO customer VALUES (1, '13-1', 500), (2, '31-1', 10), (3, '23-1', 900), \
         (4, '13-2', 700), (5, '13-3', -5), (6, '29-9', 100), (7, '99-9', 9999), (8, '13-8', 600)",
        "INSERT INTO orders VALUES (1, 1, 'F', '1993-07-05', '1-URGENT'), \
         (2, 1, 'F', '1993-08-10', '1-URGENT'), (3, 2, 'O', '1993-09-30', '2-HIGH'), \
         (4, 2, 'F', '1993-10-01', '1-URGENT'), (5, 3, 'F', '1993-07-06', '2-HIGH')",
        "INSERT INTO lineitem VALUES \
         (1, 1, 1, 4, 1, 700, '1994-01-10', '1993-08-01', '1993-08-05'), \
         (1, 2, 1, 1, 20, 100, '1994-02-01', '1993-08-01', '1993-07-30'), \
         (2, 1, 3, 4, 10, 70, '1993-12-31', '1993-09-01', '1993-09-05'), \
         (2, 2, 3, 5, 90, 700, '1994-05-05', '1993-09-01', '1993-09-06'), \
         (3, 1, 1, 3, 100, 350, '1994-03-03', '1993-10-01', '1993-10-01'), \
         (4, 1, 2, 4, 5, 35, '1995-01-01', '1993-11-01', '1993-11-02'), \
         (5, 1, 1, 3, 30, 90, '1994-12-31', '1993-08-01', '1993-08-02'), \
         (5, 2, 2, 5, 7, 9, '1994-06-06', '1993-08-01', '1993-08-01')",
    ])
}

/// Of the parts of size 15 made of brass, those who supply them in Europe at the least cost.
const Q2: &str = "
    select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
    from part, supplier, partsupp, nation, region
    where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15
      and p_type like '%BRASS' and s_nationkey = n_nationkey and n_regionkey = r_regionkey
      and r_name = 'EUROPE'
      and ps_supplycost = (
        select min(ps_supplycost) from partsupp, supplier, nation, region
        where p_partkey = ps_partkey and s_suppkey = ps_suppkey
          and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE')
    order by s_acctbal desc, n_name, s_name, p_partkey
    limit 100";

/// Orders of a quarter that had a late line, by their priority.
const Q4: &str = "
    select o_orderpriority, count(*) as order_count
    from orders
    where o_orderdate >= date '1993-07-01'
      and o_orderdate < date '1993-07-01' + interval '3' month
      and exists (
        select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
    group by o_orderpriority
    order by o_orderpriority";

/// Lines of less than a fifth of the mean quantity of their part: 1 of 1, 20, 100 and 30.
const Q17: &str = "
    select sum(l_extendedprice) / 7.0 as avg_yearly
    from lineitem, part
    where p_partkey = l_partkey and p_brand = 'Brand#23' and p_container = 'MED BOX'
      and l_quantity < (
        select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)";

/// Suppliers with more of a part than half of what they sold: 66 of 100 + 30.
const Q20: &str = "
    select s_name, s_address
    from supplier, nation
    where s_suppkey in (
        select ps_suppkey from partsupp
        where ps_partkey in (select p_partkey from part where p_name like 'forest%')
          and ps_availqty > (
            select 0.5 * sum(l_quantity) from lineitem
            where l_partkey = ps_partkey and l_suppkey = ps_suppkey
              and l_shipdate >= date '1994-01-01'
              and l_shipdate < date '1994-01-01' + interval '1' year))
      and s_nationkey = n_nationkey and n_name = 'CANADA'
    order by s_name";

/// Suppliers who alone kept an order of several waiting.
const Q21: &str = "
    select s_name, count(*) as numwait
    from supplier, lineitem l1, orders, nation
    where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F'
      and l1.l_receiptdate > l1.l_commitdate
      and exists (
        select * from lineitem l2
        where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
      and not exists (
        select * from lineitem l3
        where l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey
          and l3.l_receiptdate > l3.l_commitdate)
      and s_nationkey = n_nationkey and n_name = 'SAUDI ARABIA'
    group by s_name
    order by numwait desc, s_name
    limit 100";

/// Customers without orders who have more than the mean.
const Q22: &str = "
    select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
    from (
        select substring(c_phone from 1 for 2) as cntrycode, c_acctbal
        from customer
        where substring(c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17')
          and c_acctbal > (
            select avg(c_acctbal) from customer
            where c_acctbal > 0.00 and substring(c_phone from 1 for 2) in
                ('13', '31', '23', '29', '30', '18', '17'))
          and not exists (select * from orders where o_custkey = c_custkey)) as custsale
    group by cntrycode
    order by cntrycode";

#[test]
fn tpch_asks_what_names_fields_around_it() {
    check_both(
        &tables(),
        &[
            (
                Q2,
                "300.00|S2|GERMANY|1|M1|A2|P2|C2;100.00|S1|FRANCE|1|M1|A1|P1|C1;\
                 100.00|S1|FRANCE|2|M2|A1|P1|C1",
            ),
            (Q4, "1-URGENT|2;2-HIGH|1"),
            (Q17, "100.0"),
            (Q20, "S3|A3"),
            (Q21, "S4|1"),
            (Q22, "13|2|1300.00"),
        ],
    );
}
