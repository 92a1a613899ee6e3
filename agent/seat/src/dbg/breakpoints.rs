//! Breakpoints that a debugger left in a program's text.
//!
//! A debugger that is killed can't take its breakpoints out, and the kernel doesn't: the next thread that
//! comes by one is killed by its trap. They are found as bytes that are a trap in memory and something else
//! in the file, in pages that are no longer the file's.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;

/// The instruction that a debugger writes.
#[cfg(target_arch = "x86_64")]
const TRAP: &[u8] = &[0xcc];
#[cfg(target_arch = "aarch64")]
const TRAP: &[u8] = &[0x00, 0x00, 0x20, 0xd4];

/// The most that is read of a process' list of mappings, in bytes.
const LONGEST: u64 = 64 << 20;
/// How much is compared at a time, in bytes: a multiple of a page and of a trap.
const PIECE: usize = 1 << 20;

/// Where a trap stands, and what the file has there.
pub(crate) type Traps = BTreeMap<u64, Vec<u8>>;

/// Text that is mapped from a file and was written to.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

/// Every trap in the text of a process that its files don't have.
///
/// # Errors
/// Its mappings or its memory can't be read.
pub(crate) fn find(pid: u32) -> io::Result<Traps> {
    let mut list = String::new();
    File::open(format!("/proc/{pid}/smaps"))?.take(LONGEST).read_to_string(&mut list)?;
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let mut traps = Traps::new();
    for mapping in written_text(&list) {
        // A file that was deleted or replaced tells nothing.
        let Ok(file) = File::open(format!("/proc/{pid}/root{}", mapping.path)) else { continue };
        compare(&memory, &file, &mapping, &mut traps);
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

/// The executable mappings of files that have pages of their own.
fn written_text(list: &str) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    let mut current = None;
    for line in list.lines() {
        if let Some(size) = line.strip_prefix("Anonymous:") {
            let own = size.trim() != "0 kB";
            found.extend(current.take().filter(|_| own));
        } else if let Some(mapping) = header(line) {
            current = mapping;
        }
    }
    found
}

/// A mapping's first line; `Some(None)` for one that holds no file's text.
fn header(line: &str) -> Option<Option<Mapping>> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let access = words.next()?;
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let path = words.nth(2).unwrap_or_default().trim_start();
    let text = access.contains('x') && path.starts_with('/') && !path.ends_with(" (deleted)");
    Some(text.then(|| Mapping { start, end, offset, path: path.to_owned() }))
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

    const LIST: &str = "\
00400000-00680000 r-xp 00001000 fe:00 12                         /usr/bin/my app
Size:               2560 kB
Anonymous:             4 kB
VmFlags: rd ex mr mw me
00680000-00700000 r-xp 00000000 fe:00 13                         /lib/untouched.so
Anonymous:             0 kB
00700000-00701000 rw-p 00000000 fe:00 13                         /lib/data.so
Anonymous:             4 kB
00701000-00702000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             4 kB
00702000-00703000 r-xp 00000000 fe:00 14                         /tmp/old (deleted)
Anonymous:             4 kB
00703000-00704000 rwxp 00000000 00:00 0 
Anonymous:             4 kB
";

    #[test]
    fn only_written_text_of_a_file_that_is_there_is_looked_at() {
        let want =
            Mapping { start: 0x40_0000, end: 0x68_0000, offset: 0x1000, path: "/usr/bin/my app".into() };
        assert_eq!(written_text(LIST), [want]);
    }

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
        let mapping = Mapping { start: 0, end: 64, offset: 0, path: String::new() };
        let mut traps = Traps::new();
        compare(&File::open(at("memory")).unwrap(), &File::open(at("file")).unwrap(), &mapping, &mut traps);
        assert_eq!(traps, Traps::from([(16, vec![0x90; TRAP.len()])]));
    }
}
