//! Structs as rows: `cargo run --release --example records`.

use esker::{Decimal, FieldType, Options, Record};

/// A row of the table. Its orders by customer are found by an index.
#[derive(Debug, Record)]
#[esker(index(customer, state))]
struct Order {
    /// Given out when the row is written.
    #[esker(key, default = uuid)]
    id: Option<[u8; 16]>,
    #[esker(max = 40)]
    customer: String,
    state: State,
    #[esker(type = "decimal(12,2)")]
    total: Decimal,
    /// Microseconds since 1970.
    #[esker(type = "timestamp", default = now)]
    placed: Option<i64>,
    /// Anything that serde can write.
    #[esker(json)]
    lines: Vec<(String, u32)>,
}

/// Its labels have this order in the database, too.
#[derive(Clone, Copy, Debug, PartialEq, FieldType)]
enum State {
    Placed,
    Paid,
    Sent,
}

/// A row of an answer.
#[derive(Debug, Record)]
struct Sum {
    customer: String,
    #[esker(type = "decimal(38,2)")]
    total: Decimal,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Options::new().memory()?;
    let orders = db.table_or_create_of::<Order>("orders")?;
    let order = |customer: &str, state, cents: i64, lines| {
        let total = Decimal::new(cents.into(), 2).unwrap_or_default();
        Order { id: None, customer: customer.into(), state, total, placed: None, lines }
    };
    orders.insert_many(&[
        order("Ada", State::Paid, 1_995, vec![("lamp".into(), 1)]),
        order("Ada", State::Sent, 4_005, vec![("desk".into(), 1), ("pen".into(), 5)]),
        order("Grace", State::Placed, 99, vec![]),
    ])?;

    let mut placed = Vec::new();
    for order in orders.iter()? {
        let order = order?;
        println!("{} {:?} {} {:?}", order.customer, order.state, order.total, order.lines);
        if order.state == State::Placed {
            placed.extend(order.id);
        }
    }
    for id in placed {
        orders.update(id, |order| order.state = State::Paid)?;
    }

    let query = esker_sql::parse(
        "SELECT customer, sum(total) AS total FROM orders WHERE state >= 'Paid' GROUP BY customer",
    )?;
    for Sum { customer, total } in db.query_as::<Sum>(&query)? {
        println!("{customer}: {total}");
    }
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
    main()
}
