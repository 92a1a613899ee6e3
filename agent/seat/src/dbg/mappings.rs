//! What a process has mapped, from `/proc/PID/smaps`.

use std::fs::File;
use std::io::{self, Read as _};

/// The most that is read of the list, in bytes.
const LONGEST: u64 = 64 << 20;

/// One mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// Its first address.
    pub(crate) start: u64,
    /// The address behind its last.
    pub(crate) end: u64,
    /// `r-xp` and the like.
    pub(crate) access: String,
    /// Where in the file it begins.
    pub(crate) offset: u64,
    /// The file as the process names it, `[heap]` and the like; nothing for memory without a name.
    pub(crate) path: String,
    /// Has it pages of its own, that aren't the file's?
    pub(crate) written: bool,
}

impl Mapping {
    /// Does it hold the code of a file that is still there?
    pub(crate) fn is_text(&self) -> bool {
        self.access.contains('x') && self.path.starts_with('/') && !self.path.ends_with(" (deleted)")
    }

    /// In bytes.
    pub(crate) const fn size(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// All of a process.
///
/// # Errors
/// The list can't be read.
pub(crate) fn of(pid: u32) -> io::Result<Vec<Mapping>> {
    let mut list = String::new();
    File::open(format!("/proc/{pid}/smaps"))?.take(LONGEST).read_to_string(&mut list)?;
    Ok(parse(&list))
}

fn parse(list: &str) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for line in list.lines() {
        if let Some(size) = line.strip_prefix("Anonymous:") {
            if let Some(last) = found.last_mut() {
                last.written = size.trim() != "0 kB";
            }
        } else if let Some(mapping) = header(line) {
            found.push(mapping);
        }
    }
    found
}

/// A mapping's first line.
fn header(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let access = words.next()?.to_owned();
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let path = words.nth(2).unwrap_or_default().trim_start().to_owned();
    Some(Mapping { start, end, access, offset, path, written: false })
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
00701000-00702000 r-xp 00000000 00:00 0                          [vdso]
Anonymous:             4 kB
00702000-00703000 r-xp 00000000 fe:00 14                         /tmp/old (deleted)
Anonymous:             4 kB
00703000-00704000 rwxp 00000000 00:00 0 
Anonymous:             4 kB
";

    #[test]
    fn each_mapping_has_its_file_and_whether_it_was_written() {
        let all = parse(LIST);
        let seen: Vec<_> = all.iter().map(|m| (m.path.as_str(), m.written, m.is_text())).collect();
        assert_eq!(
            seen,
            [
                ("/usr/bin/my app", true, true),
                ("/lib/untouched.so", false, true),
                ("[vdso]", true, false),
                ("/tmp/old (deleted)", true, false),
                ("", true, false),
            ]
        );
        let first = all.first().unwrap();
        assert_eq!((first.start, first.size(), first.offset), (0x40_0000, 0x28_0000, 0x1000));
    }
}
