//! `podbench dbg`, and the `gdb` that others find on PATH: gdb with what it has to be told of a process
//! that has another root, and never without a look at what the kernel allows.
//!
//! - [`gdb`]: the words, pure
//! - [`program`]: which file is the target's program
//! - [`mod@core`]: a dump of a target that lives on
//! - [`guard`], [`breakpoints`], [`mappings`]: nothing of a killed debugger stays in the target

mod breakpoints;
mod core;
mod gdb;
pub(crate) mod guard;
mod mappings;
mod program;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use podbench_contract::exit;
use podbench_contract::oracle::{self, Verdict};

use self::gdb::Target;
pub(crate) use self::gdb::Wishes;
use self::program::Program;
use crate::agent::identity;
use crate::cli::{Dbg, Work};
use crate::measure::{Asked, collect};
use crate::runtime::Runtime;
use crate::{capreport, exec, out, proc, runtime, settings};

/// `podbench dbg`.
pub(crate) fn run(asked: &Dbg) -> u8 {
    let Some(gdb) = find() else { return exit::FAILED };
    match &asked.work {
        Work::Launch(program) => {
            let argv = gdb::launch(&gdb, program, &asked.wishes);
            start(&argv, &[], asked.dry_run)
        }
        Work::Attach(pid) => {
            let target =
                match target(&Asked { cid: asked.cid.clone(), pid: *pid, probe: true }, asked.dry_run) {
                    Ok(target) => target,
                    Err(code) => return code,
                };
            if let Some(folder) = &asked.core {
                return core(&gdb, &target, asked, folder.as_deref());
            }
            let argv = [gdb::attach(&gdb, &target, &asked.wishes), asked.more.clone()].concat();
            start(&argv, &[target.pid], asked.dry_run)
        }
    }
}

/// Takes a core, and opens it where somebody is there to look, or more words say what to look for.
fn core(gdb: &str, target: &Target, asked: &Dbg, folder: Option<&str>) -> u8 {
    let folder = folder.map_or_else(|| room().join("cores"), PathBuf::from);
    if asked.dry_run {
        let file = folder.join(format!("core.{}", target.pid)).to_string_lossy().into_owned();
        let dump = core::dump(gdb, target, &asked.wishes, &file);
        let open = gdb::open_core(gdb, target, &asked.wishes, &file);
        return out::text(&format!("{}\n{}\n", gdb::shown(&dump), gdb::shown(&open)));
    }
    match core::take(gdb, target, &asked.wishes, &folder) {
        Ok(file) if asked.more.is_empty() && !std::io::stdin().is_terminal() => out::text(&(file + "\n")),
        Ok(file) => {
            let open = gdb::open_core(gdb, target, &asked.wishes, &file);
            exec::replace(&[open, asked.more.clone()].concat(), &[])
        }
        Err(code) => code,
    }
}

/// The `gdb` on PATH: the words as they are, behind what gdb has to be told first. An editor's adapter
/// or a script finds a gdb that reads the target's files.
pub(crate) fn as_gdb(words: &[String]) -> u8 {
    let Some(gdb) = find() else { return exit::FAILED };
    let (pid, named) = gdb::asked(words);
    let target = match pid {
        Some(_) => match target(&Asked { cid: None, pid, probe: true }, false) {
            Ok(target) => Some(target),
            Err(code) => return code,
        },
        None => None,
    };
    let mut argv = vec![gdb];
    for line in gdb::settings(target.as_ref(), &Wishes::default()) {
        argv.extend(["-iex".to_owned(), line]);
    }
    if let Some(program) = target.as_ref().and_then(|t| t.program.clone()).filter(|_| !named) {
        argv.extend(["-iex".to_owned(), format!("file {program}")]);
    }
    argv.extend(words.iter().cloned());
    // Which process a later `attach` means can't be known: the target's are watched.
    let watched = match &target {
        Some(target) => vec![target.pid],
        None => crate::measure::targets(),
    };
    start(&argv, &watched, false)
}

/// Looks at a process, and says why there is nothing to debug where there is nothing.
fn target(asked: &Asked, dry_run: bool) -> Result<Target, u8> {
    capreport::known(asked.pid)?;
    let measured = collect(asked);
    let Some(process) = &measured.target else {
        out::note("no process of the target was found: podbench pids shows what there is");
        return Err(exit::USAGE);
    };
    let verdict = oracle::verdict(&measured);
    if verdict != Verdict::LiveAttach {
        out::note(&format!("no debugger can attach to pid {} ({})", process.pid, process.name));
        capreport::blockers(&measured).lines().for_each(out::note);
        return Err(verdict.exit());
    }
    let pid = process.pid;
    let foreign = proc::mount_namespace(pid).is_ok_and(|ns| ns != runtime::own_mount_namespace());
    let program = if foreign { for_gdb(pid, dry_run)? } else { None };
    Ok(Target { pid, program, foreign })
}

fn for_gdb(pid: u32, dry_run: bool) -> Result<Option<String>, u8> {
    let found = program::of(pid, &room().join("programs")).and_then(|program| {
        if let (Program::Copy(to), false) = (&program, dry_run) {
            program::copy(pid, to)?;
        }
        Ok(program)
    });
    match found {
        Ok(program) => Ok(Some(program.path())),
        Err(e) => {
            out::note(&format!("the program of pid {pid} can't be had for gdb: {e}"));
            Err(exit::FAILED)
        }
    }
}

/// Where copies and cores go: home, which over a plain exec is `/`; else what the agent made for this uid.
fn room() -> PathBuf {
    let runtime = Runtime::configured();
    let made = runtime.iter().flat_map(|r| [identity::of(r).1, r.dir().to_owned()]);
    let mut homes = settings::home().into_iter().chain(made).filter(|dir| dir.starts_with('/'));
    let home = homes.find(|dir| rustix::fs::access(dir.as_str(), rustix::fs::Access::WRITE_OK).is_ok());
    Path::new(home.as_deref().unwrap_or("/tmp")).join(".podbench")
}

/// The real gdb: the first on PATH that isn't this program.
fn find() -> Option<String> {
    let own = std::fs::canonicalize("/proc/self/exe").ok();
    let path = settings::path();
    let mut there = path.split(':').filter(|dir| dir.starts_with('/')).map(|dir| Path::new(dir).join("gdb"));
    let found: Option<PathBuf> = there.find(|file| file.is_file() && std::fs::canonicalize(file).ok() != own);
    if found.is_none() {
        out::note("this seat's image has no gdb: the full image has one (--image, --new)");
    }
    found.map(|file| file.to_string_lossy().into_owned())
}

/// Becomes gdb, with a guard behind it.
fn start(argv: &[String], watched: &[u32], dry_run: bool) -> u8 {
    if dry_run {
        return out::text(&(gdb::shown(argv) + "\n"));
    }
    settings::leave_a_folder_that_is_gone();
    // Held until gdb ends, in whatever way.
    let _held = match guard::start(watched) {
        Ok(held) => held,
        Err(e) => {
            out::note(&format!("nothing would take out the breakpoints of a gdb that is killed: {e}"));
            return exit::FAILED;
        }
    };
    exec::replace(argv, &[])
}
