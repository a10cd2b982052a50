//! Two faults of openapi-python-client 0.29.1 that are not of the document: of an operation with
//! bodies of several media types it asks whether the body is a `list[…]`, which Python refuses, and
//! forgets an import where there is no optional parameter. Where one is not met any more, this says
//! so, and goes.

use std::fs;
use std::path::Path;

use crate::served::{failed, shown};
use crate::{Error, ErrorKind, Result};

/// File, what is there, and what would work.
const MENDS: [(&str, &str, &str); 2] = [
    ("api/default/load_rows.py", "isinstance(body, list[Row])", "isinstance(body, list)"),
    (
        "api/default/create_table.py",
        "import UNSET, File, Response\n",
        "import UNSET, File, Response, Unset\n",
    ),
];

/// Mends a client that was generated into a directory.
pub(super) fn apply(client: &Path) -> Result<()> {
    for (file, faulty, right) in MENDS {
        let path = client.join(file);
        let text = fs::read_to_string(&path).map_err(|e| failed(&shown(&path), &e))?;
        if !text.contains(faulty) {
            let message = format!("{file}: the generator does not write {faulty:?} any more");
            return Err(Error::new(ErrorKind::CheckFailed, message));
        }
        fs::write(&path, text.replace(faulty, right)).map_err(|e| failed(&shown(&path), &e))?;
    }
    Ok(())
}
