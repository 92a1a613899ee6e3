//! The only reader of the arguments and the environment.
//!
//! Nothing here is a reading of a measurement: the environment of a seat is what somebody wrote
//! into a spec. It names the key that may log in, a hint at the target, and what a session inherits.

#![expect(clippy::disallowed_methods, reason = "this module is the environment's one home")]

use std::ffi::OsString;
use std::path::Path;

use podbench_contract::env;
use podbench_contract::ids::ContainerId;
use podbench_contract::session::PATH;

/// The words after the program's name.
pub(crate) fn args() -> Vec<OsString> {
    std::env::args_os().skip(1).collect()
}

/// The same as text; what isn't Unicode is replaced.
pub(crate) fn words() -> Vec<String> {
    args().into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Was this program started by that name?
pub(crate) fn called_as(name: &str) -> bool {
    std::env::args_os().next().is_some_and(|own| Path::new(&own).file_name() == Some(name.as_ref()))
}

/// Goes home from a folder that was deleted: gdb's Python doesn't start in one.
pub(crate) fn leave_a_folder_that_is_gone() {
    if std::env::current_dir().is_err() {
        let _ = std::env::set_current_dir(home().as_deref().unwrap_or("/"));
    }
}

fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The home that the spec or the runtime names.
pub(crate) fn home() -> Option<String> {
    var("HOME")
}

/// Where programs are looked for.
pub(crate) fn path() -> String {
    var("PATH").unwrap_or_else(|| PATH.to_owned())
}

/// Which container the spec says is the target: a hint, and verified before it is believed.
pub(crate) fn target_hint() -> Option<ContainerId> {
    env::TARGET_CID.parse(var(env::TARGET_CID.name).as_deref())
}

/// The key that the spec hands to this seat, as it stands there.
pub(crate) fn public_key() -> Option<String> {
    var(env::PUBKEY.name)
}

/// What every session inherits: podbench's own variables without the key, and the language.
pub(crate) fn session() -> Vec<(String, String)> {
    let own = env::NAMES.into_iter().filter(|name| *name != env::PUBKEY.name);
    own.chain(["LANG"]).filter_map(|name| Some((name.to_owned(), var(name)?))).collect()
}
