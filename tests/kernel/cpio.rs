//! An initramfs, written as the kernel reads it: uncompressed, "newc", by nobody's root.

/// The archive so far.
#[derive(Default)]
pub(crate) struct Cpio {
    bytes: Vec<u8>,
    entries: u32,
}

impl Cpio {
    /// A folder. Its parents come first.
    pub(crate) fn folder(&mut self, name: &str) {
        self.entry(name, 0o040_755, &[], (0, 0));
    }

    /// A program or a file.
    pub(crate) fn file(&mut self, name: &str, data: &[u8]) {
        self.entry(name, 0o100_755, data, (0, 0));
    }

    /// A character device.
    pub(crate) fn device(&mut self, name: &str, number: (u32, u32)) {
        self.entry(name, 0o020_666, &[], number);
    }

    /// The whole archive.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[], (0, 0));
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, data: &[u8], device: (u32, u32)) {
        self.entries += 1;
        let size = u32::try_from(data.len()).unwrap();
        let length = u32::try_from(name.len() + 1).unwrap();
        let header = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, length, 0]
            .map(|n| format!("{n:08X}"));
        self.bytes.extend_from_slice(format!("070701{}{name}\0", header.concat()).as_bytes());
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
