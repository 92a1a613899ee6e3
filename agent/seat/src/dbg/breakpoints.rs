//! Breakpoints that a debugger left in a program's text.
//!
//! A debugger that is killed can't take its breakpoints out, and the kernel doesn't: the next thread that
//! comes by one is killed by its trap. They are found as bytes that are a trap in memory and something else
//! in the file, in pages that are no longer the file's.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;

use super::mappings::{self, Mapping};

/// The instruction that a debugger writes.
#[cfg(target_arch = "x86_64")]
const TRAP: &[u8] = &[0xcc];
#[cfg(target_arch = "aarch64")]
const TRAP: &[u8] = &[0x00, 0x00, 0x20, 0xd4];

/// How much is compared at a time, in bytes: a multiple of a page and of a trap.
const PIECE: usize = 1 << 20;

/// Where a trap stands, and what the file has there.
pub(crate) type Traps = BTreeMap<u64, Vec<u8>>;

/// Every trap in the text of a process that its files don't have.
///
/// # Errors
/// Its mappings or its memory can't be read.
pub(crate) fn find(pid: u32) -> io::Result<Traps> {
    let mappings = mappings::of(pid)?;
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let mut traps = Traps::new();
    for mapping in mappings.iter().filter(|m| m.written && m.is_text()) {
        // A file that was deleted or replaced tells nothing.
        let Ok(file) = File::open(format!("/proc/{pid}/root{}", mapping.path)) else { continue };
        compare(&memory, &file, mapping, &mut traps);
    }
    Ok(traps)
}

/// Puts back what the files have; answers how many.
///
/// # Errors
/// The memory can't be written.
pub(crate) fn put_back(pid: u32, traps: &Traps) -> io::Result<usize> {
    let memory = OpenOptions::new().write(true).open(format!("/proc/{pid}/mem"))?;
    for (at, bytes) in traps {
        memory.write_all_at(bytes, *at)?;
    }
    Ok(traps.len())
}

fn compare(memory: &File, file: &File, mapping: &Mapping, traps: &mut Traps) {
    let (mut is, mut was) = (vec![0; PIECE], vec![0; PIECE]);
    let mut at = mapping.start;
    while at < mapping.end {
        let length = usize::try_from(mapping.end - at).unwrap_or(PIECE).min(PIECE);
        let (Some(is), Some(was)) = (is.get_mut(..length), was.get_mut(..length)) else { return };
        // Behind the end of a file its last page is zeros, which are no code.
        let known = file.read_at(was, mapping.offset + (at - mapping.start)).unwrap_or_default();
        if memory.read_exact_at(is, at).is_err() {
            return;
        }
        let pieces = is.chunks_exact(TRAP.len()).zip(was.chunks_exact(TRAP.len())).enumerate();
        for (n, (is, was)) in pieces.take(known / TRAP.len()) {
            if is == TRAP && was != TRAP {
                traps.insert(at + (n * TRAP.len()) as u64, was.to_vec());
            }
        }
        at += length as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trap_that_the_file_has_too_is_the_programs_own() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut file = vec![0x90; 64];
        file[8..8 + TRAP.len()].copy_from_slice(TRAP);
        let mut memory = file.clone();
        memory[16..16 + TRAP.len()].copy_from_slice(TRAP);
        std::fs::write(at("file"), &file).unwrap();
        std::fs::write(at("memory"), &memory).unwrap();
        let mapping = Mapping { end: 64, ..Mapping::default() };
        let mut traps = Traps::new();
        compare(&File::open(at("memory")).unwrap(), &File::open(at("file")).unwrap(), &mapping, &mut traps);
        assert_eq!(traps, Traps::from([(16, vec![0x90; TRAP.len()])]));
    }
}
