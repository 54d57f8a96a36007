//! A copy-on-write file: writes stay in memory.
//!
//! A database is opened, repaired and read completely in this way before the real file is touched.
//! So a file that turns out to be damaged stays unchanged.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

const BLOCK: u64 = 4096;
/// A repair needs a few pages; a damaged length could ask for anything.
const MOST_GROWTH: u64 = 64 << 20;

#[derive(Debug)]
pub(super) struct Overlay {
    file: File,
    most: u64,
    written: Mutex<OverlayFile>,
}

#[derive(Debug)]
struct OverlayFile {
    length: u64,
    /// The file is visible up to here; beyond are zeros.
    base: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Overlay {
    pub(super) fn new(file: File) -> Result<Self> {
        let length = file.metadata()?.len();
        let written = Mutex::new(OverlayFile { length, base: length, blocks: BTreeMap::new() });
        Ok(Self { file, most: length.saturating_mul(4).saturating_add(MOST_GROWTH), written })
    }

    fn written(&self) -> MutexGuard<'_, OverlayFile> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current content of a block.
    fn block(&self, written: &OverlayFile, number: u64) -> Result<Vec<u8>> {
        if let Some(block) = written.blocks.get(&number) {
            return Ok(block.clone());
        }
        let start = number * BLOCK;
        let shown = written.base.saturating_sub(start).min(BLOCK);
        let mut block = vec![0; shown as usize];
        self.file.read_exact_at(&mut block, start)?;
        block.resize(BLOCK as usize, 0);
        Ok(block)
    }

    /// The blocks of a range: number, first byte in the block, first byte of the range, count.
    fn parts(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let at = offset + done as u64;
            let within = (at % BLOCK) as usize;
            let count = (BLOCK as usize - within).min(length - done);
            let part = (at / BLOCK, within, done, count);
            done += count;
            (count > 0).then_some(part)
        })
    }

    fn check(&self, written: &OverlayFile, offset: u64, length: usize) -> Result<()> {
        match offset.checked_add(length as u64) {
            Some(end) if end <= written.length => Ok(()),
            _ => Err(Error::new(ErrorKind::UnexpectedEof, "it is cut off")),
        }
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> Result<u64> {
        Ok(self.written().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let written = self.written();
        self.check(&written, offset, out.len())?;
        for (number, within, done, count) in Self::parts(offset, out.len()) {
            let block = self.block(&written, number)?;
            if let (Some(to), Some(from)) =
                (out.get_mut(done..done + count), block.get(within..within + count))
            {
                to.copy_from_slice(from);
            }
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<()> {
        if length > self.most {
            return Err(Error::new(ErrorKind::InvalidData, "it claims to be far larger than it is"));
        }
        let mut written = self.written();
        if length < written.length {
            let last = length / BLOCK;
            let mut kept = self.block(&written, last)?;
            kept.get_mut((length % BLOCK) as usize..).unwrap_or_default().fill(0);
            written.blocks.retain(|number, _| *number < last);
            written.blocks.insert(last, kept);
            written.base = written.base.min(length);
        }
        written.length = length;
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut written = self.written();
        self.check(&written, offset, data.len())?;
        for (number, within, done, count) in Self::parts(offset, data.len()) {
            let mut block = self.block(&written, number)?;
            if let (Some(to), Some(from)) =
                (block.get_mut(within..within + count), data.get(done..done + count))
            {
                to.copy_from_slice(from);
            }
            written.blocks.insert(number, block);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_the_file_stays_as_it_was() {
        let path = std::env::temp_dir().join(format!("aviary-overlay-{}", std::process::id()));
        let original: Vec<u8> = (0..10_000_u32).map(|byte| (byte % 251) as u8).collect();
        std::fs::write(&path, &original).unwrap();
        let overlay = Overlay::new(File::open(&path).unwrap()).unwrap();
        let mut model = original.clone();
        let read = |model: &[u8]| {
            let mut all = vec![1; model.len()];
            overlay.read(0, &mut all).unwrap();
            assert!(all == *model);
        };
        read(&model);
        overlay.write(4000, &[7; 5000]).unwrap();
        model[4000..9000].fill(7);
        read(&model);
        for length in [6000_usize, 12_000, 4096, 9000] {
            overlay.set_len(length as u64).unwrap();
            model.resize(length, 0);
            read(&model);
        }
        assert!(overlay.read(8999, &mut [0; 2]).is_err());
        assert!(overlay.write(u64::MAX, &[0; 2]).is_err());
        assert!(overlay.set_len(1 << 40).is_err());
        assert!(std::fs::read(&path).unwrap() == original);
        std::fs::remove_file(&path).unwrap();
    }
}
