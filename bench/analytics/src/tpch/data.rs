//! The rows of TPC-H, as CSV.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use tpchgen::csv::{
    CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv,
};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};

use crate::Result;

/// Writes a file for each table.
pub fn write(directory: &Path, scale: f64) -> Result<()> {
    let file = |name, header, rows: &mut dyn Iterator<Item = Box<dyn Display>>| {
        write_file(directory, name, header, rows)
    };
    /// The rows of a table as lines of CSV.
    macro_rules! table {
        ($name:literal, $generator:ident, $csv:ident) => {{
            let rows = $generator::new(scale, 1, 1).into_iter();
            let mut lines = rows.map(|row| Box::new($csv::new(row)) as Box<dyn Display>);
            file($name, $csv::header(), &mut lines)?;
        }};
    }
    table!("part", PartGenerator, PartCsv);
    table!("supplier", SupplierGenerator, SupplierCsv);
    table!("partsupp", PartSuppGenerator, PartSuppCsv);
    table!("customer", CustomerGenerator, CustomerCsv);
    table!("orders", OrderGenerator, OrderCsv);
    table!("lineitem", LineItemGenerator, LineItemCsv);
    table!("nation", NationGenerator, NationCsv);
    table!("region", RegionGenerator, RegionCsv);
    Ok(())
}

fn write_file(
    directory: &Path,
    name: &str,
    header: &str,
    rows: &mut dyn Iterator<Item = Box<dyn Display>>,
) -> Result<()> {
    let path = directory.join(name).with_extension("csv");
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    writeln!(file, "{header}")?;
    for row in rows {
        writeln!(file, "{row}")?;
    }
    file.flush()?;
    Ok(())
}
