//! `COPY … FROM STDIN` and `COPY … TO STDOUT`, where a client sends and gets the bytes.

use std::io::{Read, Write};

use esker::{ErrorKind, FileFormat, FileRequest};
use esker_sql::{CopyStatement, Outcome, Statement};

use super::statement::needs;
use super::{Answer, Request, Session, SqlText};
use crate::tenant::QuotaReservation;
use crate::{Code, Error, Result};

/// The statement of a text that copies between a table and a client.
///
/// # Errors
/// `InvalidRequest` when it is another.
pub(crate) fn copied(text: &SqlText) -> Result<&CopyStatement> {
    match text.statement()?.said() {
        Statement::Copy(copy) if copy.file().is_standard => Ok(copy),
        _ => Err(Error::invalid("expected COPY … FROM STDIN, or COPY … TO STDOUT")),
    }
}

/// The media type of what is copied.
pub(crate) fn media_of(copy: &CopyStatement) -> &'static str {
    match copy.file().file.format {
        Some(FileFormat::Csv) => "text/csv",
        Some(FileFormat::Json) => "application/json",
        Some(FileFormat::Ndjson) => "application/x-ndjson",
        _ => "text/plain",
    }
}

fn no_count() -> Error {
    Error::new(Code::Internal, "a copy did not tell how many rows it added")
}

impl Session {
    /// Checks the rights that a copy needs; returns it with the tables that are meant.
    fn meant_copy(&self, text: &SqlText) -> Result<CopyStatement> {
        let copy = copied(text)?;
        let statement = Statement::Copy(copy.clone());
        let is_temporary = self.sql.is_of_temporary(&statement)?;
        if is_temporary {
            self.expect_lasting(&statement)?;
        }
        let meant = self.sql.resolved(&statement)?;
        if !is_temporary {
            let (level, table) = needs(&meant);
            self.access.expect(level, table)?;
        }
        self.expect_files(&meant)?;
        Ok(match &*meant {
            Statement::Copy(copy) => copy.clone(),
            _ => copy.clone(),
        })
    }

    /// Adds the rows of bytes, all or none; returns how many. Outside of a transaction they are a
    /// load.
    ///
    /// # Errors
    /// With the line and the column of what does not fit; nothing was changed then.
    pub(crate) fn copy_in(&mut self, text: &SqlText, bytes: Box<dyn Read + Send>) -> Result<u64> {
        let in_flight = self.begin(&Request::Sql { text: text.clone(), parameters: Vec::new() });
        let done = self.act(|session| session.take_rows(text, bytes).map(Answer::Changed));
        self.finish(in_flight, done.is_ok());
        match done? {
            Answer::Changed(rows) => Ok(rows),
            _ => Err(no_count()),
        }
    }

    /// Writes the rows of a table or query.
    ///
    /// # Errors
    /// As for [`Session::stream`]; some of it may have been written then.
    pub(crate) fn copy_out(&mut self, text: &SqlText, out: &mut dyn Write) -> Result<()> {
        let in_flight = self.begin(&Request::Sql { text: text.clone(), parameters: Vec::new() });
        let done = self.act(|session| session.give_rows(text, out).map(|()| Answer::Done));
        self.finish(in_flight, done.is_ok());
        done.map(drop)
    }

    fn take_rows(&mut self, text: &SqlText, bytes: Box<dyn Read + Send>) -> Result<u64> {
        let meant = self.meant_copy(text)?;
        let CopyStatement::From { table, fields, file } = &meant else {
            return Err(Error::invalid("expected COPY … FROM STDIN"));
        };
        if self.is_in_transaction() {
            self.reserve_quota(1, 0)?;
            let options = self.change_options(Vec::new(), text.semantics());
            let done = self.sql.copy_in(copied(text)?, bytes, &options)?;
            return match done {
                Outcome::Added(added) => Ok(added.rows),
                _ => Err(no_count()),
            };
        }
        // A load goes on for as long as rows come.
        self.began = None;
        let mut room = QuotaReservation::default();
        self.reserve_load_quota(&mut room, 1)?;
        let table = self.database().table(table)?;
        let schema = table.schema();
        for name in fields {
            schema.expect_position(name)?;
        }
        let request = FileRequest { columns: fields.clone(), ..FileRequest::rows_of(&schema) };
        let rows = self.scope().file_access()?.open_from(&file.file, bytes, &request)?;
        let mut load = table.load()?;
        load.reserve_input(rows.memory_bytes())?;
        let (in_file, mut refused) = (rows.places(), None);
        let read = rows.read(&mut |batch| {
            load.push(batch)?;
            let more = self.expect_wanted();
            let more = more.and_then(|()| self.reserve_load_quota(&mut room, load.rows()));
            more.map_err(|e| {
                refused = Some(e);
                esker::Error::new(ErrorKind::Cancelled, "the rest is not wanted")
            })
        });
        if let Some(e) = refused {
            return Err(e);
        }
        read.map_err(&in_file)?;
        self.expect_wanted()?;
        self.expect_valid()?;
        Ok(load.finish().map_err(in_file)?.rows)
    }

    fn give_rows(&mut self, text: &SqlText, out: &mut dyn Write) -> Result<()> {
        self.meant_copy(text)?;
        let _permit = self.begin_query()?;
        let options = self.change_options(Vec::new(), text.semantics());
        self.sql.copy_out(copied(text)?, out, &options)?;
        Ok(())
    }
}
