//! The protobuf wire format: tags, varints, lengths. Must not know messages. Every read moves
//! forward or fails.

use super::ProtobufError;

/// Deeper groups than this are not skipped but refused; nothing that is served has any.
const MAX_GROUPS: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Varint,
    Fixed64,
    Delimited,
    StartGroup,
    EndGroup,
    Fixed32,
}

#[derive(Debug)]
pub(super) struct Reader<'b> {
    rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next field's number and wire type; `None` at the end.
    pub(super) fn tag(&mut self) -> Result<Option<(u32, Wire)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = u32::try_from(self.varint()?).map_err(|_| ProtobufError::Tag)?;
        let wire = match tag & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed64,
            2 => Wire::Delimited,
            3 => Wire::StartGroup,
            4 => Wire::EndGroup,
            5 => Wire::Fixed32,
            _ => return Err(ProtobufError::Tag),
        };
        match tag >> 3 {
            0 => Err(ProtobufError::Tag),
            number => Ok(Some((number, wire))),
        }
    }

    pub(super) fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(ProtobufError::Truncated)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Varint)
    }

    /// The varint of a field that must be one.
    pub(super) fn number(&mut self, wire: Wire, field: &'static str) -> Result<u64, ProtobufError> {
        if wire == Wire::Varint { self.varint() } else { Err(ProtobufError::WireType(field)) }
    }

    /// The bytes of a field that must be length-delimited.
    pub(super) fn delimited(&mut self, wire: Wire, field: &'static str) -> Result<&'b [u8], ProtobufError> {
        if wire != Wire::Delimited {
            return Err(ProtobufError::WireType(field));
        }
        let length = usize::try_from(self.varint()?).map_err(|_| ProtobufError::Truncated)?;
        self.take(length)
    }

    /// Skips an unknown field, which newer clients may send.
    pub(super) fn skip(&mut self, wire: Wire) -> Result<(), ProtobufError> {
        let mut groups = 0_u32;
        let mut wire = wire;
        loop {
            match wire {
                Wire::Varint => drop(self.varint()?),
                Wire::Fixed64 => drop(self.take(8)?),
                Wire::Fixed32 => drop(self.take(4)?),
                Wire::Delimited => drop(self.delimited(wire, "unknown")?),
                Wire::StartGroup if groups >= MAX_GROUPS => return Err(ProtobufError::Tag),
                Wire::StartGroup => groups += 1,
                Wire::EndGroup => groups = groups.checked_sub(1).ok_or(ProtobufError::Tag)?,
            }
            if groups == 0 {
                return Ok(());
            }
            wire = self.tag()?.ok_or(ProtobufError::Truncated)?.1;
        }
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], ProtobufError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}
