//! Sketches of the values of fields.

use esker_format::segment::{FieldSketch, add_values};
use esker_format::{Field, Room, invariant};

use super::Segment;
use crate::Result;

impl Segment {
    /// About which values a field has, dead rows included, where the segment has a sketch of them
    /// and they are of the reader's type.
    #[must_use]
    pub fn sketch(&self, field: &Field) -> Option<&FieldSketch> {
        let layout = self.layout(field)?;
        layout.sketch.as_ref().filter(|_| layout.data_type == field.data_type)
    }

    /// Looks for each value of some fields in their sketches.
    ///
    /// # Errors
    /// `Corrupt` naming a field whose sketch lacks one, or when a block does not fit its checksum.
    pub fn verify_sketches(&self, fields: &[Field]) -> Result<()> {
        for field in fields {
            let Some(sketch) = self.sketch(field) else { continue };
            let mut whole = sketch.clone();
            let room = Room::default();
            add_values(&mut whole, &self.column(field, 0..self.row_count(), &room)?);
            let (place, name) = (format_args!("segment {}", self.id()), &field.name);
            invariant!(whole == *sketch, place, "the sketch of field {name:?} lacks values");
        }
        Ok(())
    }
}
