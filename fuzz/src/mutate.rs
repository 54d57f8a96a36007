//! Inputs made from other inputs, the same each time: for the short runs of the fuzz targets in the tests.

/// Numbers by chance, the same for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// One of the inputs with a few bytes changed, doubled, dropped, or taken from another.
pub(crate) fn mutated(inputs: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
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
    let pick = |chance: &mut Chance| inputs[chance.below(inputs.len())].clone();
    let mut input = pick(chance);
    for _ in 0..=chance.below(4) {
        let at = chance.below(input.len() + 1);
        match chance.below(6) {
            0 => input.insert(at, chance.next() as u8),
            1 => input.truncate(at.max(input.len() / 2)),
            2 if at < input.len() => input[at] = chance.next() as u8,
            3 if at < input.len() => drop(input.remove(at)),
            4 => {
                let other = pick(chance);
                let from = chance.below(other.len().max(1)).min(other.len());
                input.splice(at..at, other[from..].iter().copied());
            }
            _ => drop(input.splice(at..at, ODD[chance.below(ODD.len())].iter().copied())),
        }
    }
    input
}
