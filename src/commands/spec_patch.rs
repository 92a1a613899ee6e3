//! Reads `--spec-patch FILE`.

use std::io::Read as _;
use std::path::Path;

use podbench_contract::text::escape;

use crate::error::Failure;
use crate::settings::Settings;
use crate::spec::patch::Patch;

/// A container's fields are a page at most: bytes.
const LONGEST: u64 = 64 << 10;

/// Reads it; `-` is stdin, a relative path is one of the working directory.
///
/// # Errors
/// When it can't be read, or holds what can't be patched: nothing is written then.
pub(super) fn read(file: &Path, settings: &Settings) -> Result<Patch, Failure> {
    let shown =
        if file == Path::new("-") { "stdin".to_owned() } else { escape(&file.to_string_lossy(), 200) };
    let wrong = |e: std::io::Error| {
        Failure::input(format!("--spec-patch {shown} can't be read")).because(e.to_string())
    };
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(LONGEST + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(settings.cwd.join(file))
            .and_then(|f| f.take(LONGEST + 1).read_to_string(&mut text))
    };
    read.map_err(wrong)?;
    if text.len() as u64 > LONGEST {
        return Err(Failure::input(format!("--spec-patch {shown} is longer than {LONGEST} bytes")));
    }
    Patch::parse(&text).map_err(|why| {
        Failure::input(format!("--spec-patch {shown}: {why}"))
            .because("it is a patch of the seat's container: env, volumeMounts, securityContext")
            .hint("kubectl explain pod.spec.ephemeralContainers")
    })
}
