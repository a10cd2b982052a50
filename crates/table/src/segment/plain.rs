//! Bytes of a file as numbers.

use esker_format::{Data, DataType};

use crate::{Error, Result};

/// Numbers as they lie in a file.
pub(super) fn plain(data_type: DataType, bytes: &[u8]) -> Result<Data<'_>> {
    use esker_format::DataType as T;
    Ok(match data_type {
        T::Bool | T::U8 => Data::U8(bytes),
        T::U16 => Data::U16(cast(bytes)?),
        T::U32 | T::Ipv4 => Data::U32(cast(bytes)?),
        T::U64 => Data::U64(cast(bytes)?),
        T::I8 => Data::I8(cast(bytes)?),
        T::I16 => Data::I16(cast(bytes)?),
        T::I32 | T::Date => Data::I32(cast(bytes)?),
        T::Decimal { .. } if data_type.is_wide() => Data::I128(cast(bytes)?),
        T::I64 | T::Timestamp | T::Time | T::Decimal { .. } => Data::I64(cast(bytes)?),
        T::F32 => Data::F32(cast(bytes)?),
        T::F64 => Data::F64(cast(bytes)?),
        T::Text | T::Bytes | T::Uuid | T::Ipv6 | T::Enum | T::Json | T::Interval | T::List(_) => {
            return Err(Error::corrupt(format!("plain {data_type}")));
        }
    })
}

pub(super) fn cast<T: bytemuck::Pod>(bytes: &[u8]) -> Result<&[T]> {
    // No bytes may lie anywhere.
    if bytes.is_empty() {
        return Ok(&[]);
    }
    bytemuck::try_cast_slice(bytes).map_err(|e| Error::corrupt(e.to_string()))
}

/// An offset of a file as a place in its mapping.
pub(super) fn byte(offset: u64) -> usize {
    // default: beyond all bytes, so that reading there fails
    usize::try_from(offset).unwrap_or(usize::MAX)
}
