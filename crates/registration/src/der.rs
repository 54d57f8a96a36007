//! Writes DER. Reading is x509-parser's; what it read is written again and compared, so that
//! nothing counts that another parser could read differently.

/// One value with its tag and length.
pub(crate) fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    match u8::try_from(length) {
        Ok(short @ 0..0x80) => out.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let from = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
            let significant = bytes.get(from..).unwrap_or_default();
            out.push(0x80 | u8::try_from(significant.len()).unwrap_or(0));
            out.extend_from_slice(significant);
        }
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

pub(crate) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tlv(0x30, parts)
}
