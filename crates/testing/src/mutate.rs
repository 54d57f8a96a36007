//! Creates inputs by mutation, for the short runs of the fuzz targets in the tests.

use crate::Random;

/// One of the inputs with a few bytes changed, doubled, dropped, or taken from another.
pub fn mutated(inputs: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    const ODD: [&[u8]; 12] = [
        b"{",
        b"[",
        b"null",
        b"\"",
        b"-1e999",
        b"%00",
        b"9223372036854775808",
        b"\xff\xfe",
        b"{{",
        b"}}",
        b"%",
        b"\\u0000",
    ];
    let pick = |random: &mut Random| inputs[random.below(inputs.len())].clone();
    let mut input = pick(random);
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        match random.below(6) {
            0 => input.insert(at, random.byte()),
            1 => input.truncate(at.max(input.len() / 2)),
            2 if at < input.len() => input[at] = random.byte(),
            3 if at < input.len() => drop(input.remove(at)),
            4 => {
                let other = pick(random);
                let from = random.below(other.len().max(1)).min(other.len());
                input.splice(at..at, other[from..].iter().copied());
            }
            _ => drop(input.splice(at..at, ODD[random.below(ODD.len())].iter().copied())),
        }
    }
    input
}
