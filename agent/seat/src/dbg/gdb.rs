//! How gdb is called. Pure: facts in, words out.

/// What gdb has to know of a process that is seen through `/proc/PID/root`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The process.
    pub(crate) pid: u32,
    /// The program's file as the seat reaches it; `None`: gdb finds it, or there is none to read.
    pub(crate) program: Option<String>,
    /// Does it have another root than the seat?
    pub(crate) foreign: bool,
}

/// What the user asked for beside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// More folders with sources.
    pub(crate) sources: Vec<String>,
    /// Let gdb run what the target's files bring.
    pub(crate) target_scripts: bool,
}

/// What is set before gdb reads any file, for whatever it is going to debug.
///
/// gdb resolves `/proc/PID/root/x` to `/x` before it compares a file with `auto-load safe-path`, so a
/// target's file at a path that is safe in the seat would count as safe. The path can't tell them apart;
/// the kinds are switched off instead. libthread-db is a library that gdb loads into itself: from the
/// seat's own folders alone.
pub(crate) fn settings(target: Option<&Target>, wishes: &Wishes) -> Vec<String> {
    let mut set: Vec<String> = vec![
        // A question on the terminal while the target stands still.
        "set pagination off".into(),
        "set libthread-db-search-path $sdir".into(),
    ];
    let foreign = target.filter(|t| t.foreign);
    match (wishes.target_scripts, foreign) {
        (true, Some(t)) => set.push(format!("add-auto-load-safe-path /proc/{}/root", t.pid)),
        (true, None) => {}
        (false, _) => set.extend(
            ["gdb-scripts", "python-scripts", "local-gdbinit"]
                .map(|kind| format!("set auto-load {kind} off")),
        ),
    }
    // A server that doesn't answer would hold up gdb while the target stands still.
    set.push("set debuginfod enabled off".into());
    if let Some(t) = foreign {
        set.push(format!("set sysroot /proc/{}/root", t.pid));
        set.push(format!("directory /proc/{}/root", t.pid));
    }
    set.extend(wishes.sources.iter().map(|dir| format!("directory {dir}")));
    set
}

/// The words that attach gdb to a process. The program comes before the process: gdb reads symbols
/// while the target still runs.
pub(crate) fn attach(gdb: &str, target: &Target, wishes: &Wishes) -> Vec<String> {
    let mut argv = start(gdb, Some(target), wishes);
    if let Some(program) = &target.program {
        argv.extend(["-ex".into(), format!("file {program}")]);
    }
    argv.extend(["-ex".into(), format!("attach {}", target.pid)]);
    argv
}

/// The words that have gdb open a core of a process that may be gone by then.
pub(crate) fn open_core(gdb: &str, target: &Target, wishes: &Wishes, core: &str) -> Vec<String> {
    let mut argv = start(gdb, Some(target), wishes);
    if let Some(program) = &target.program {
        argv.extend(["-ex".into(), format!("file {program}")]);
    }
    argv.extend(["-ex".into(), format!("core-file {core}")]);
    argv
}

/// The words that have gdb start a program.
pub(crate) fn launch(gdb: &str, program: &[String], wishes: &Wishes) -> Vec<String> {
    let mut argv = start(gdb, None, wishes);
    argv.push("--args".into());
    argv.extend(program.iter().cloned());
    argv
}

fn start(gdb: &str, target: Option<&Target>, wishes: &Wishes) -> Vec<String> {
    let mut argv = vec![gdb.to_owned(), "-q".into()];
    for line in settings(target, wishes) {
        argv.extend(["-iex".into(), line]);
    }
    // Go's runtime preempts its threads with it, thousands of times a second.
    argv.extend(["-ex".into(), "handle SIGURG nostop noprint pass".into()]);
    argv
}

/// The command for a person: what a shell makes into these words. It names the gdb on PATH, behind which
/// the guard stands as well.
pub(crate) fn shown(argv: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&b))
    };
    let quoted = |word: &String| {
        if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let words = argv.iter().skip(1).map(quoted);
    std::iter::once("gdb".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The process that somebody else's words ask gdb to attach to, and whether they name a program.
///
/// gdb takes one dash or two, and any beginning of a name that is no other's: `-p 7`, `--pid=7`, `-pid 7`,
/// `--pi 7`; `gdb PROGRAM 7` too.
pub(crate) fn asked(words: &[String]) -> (Option<u32>, bool) {
    let (mut pid, mut program) = (None, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
            // The second word is a process or a core.
            match word.parse() {
                Ok(number) if program => pid = pid.or(Some(number)),
                _ => program = true,
            }
            continue;
        };
        let (name, value) = option.split_once('=').map_or((option, None), |(n, v)| (n, Some(v)));
        match name {
            "p" | "pi" | "pid" => {
                let value = value.map(str::to_owned).or_else(|| words.next().cloned());
                pid = value.and_then(|v| v.parse().ok());
            }
            "args" | "h" | "help" | "v" | "version" => return (None, true),
            name if value.is_none() && TAKES_VALUE.contains(&name) => {
                words.next();
            }
            _ => {}
        }
    }
    (pid, program)
}

/// gdb's options with a word behind them.
const TAKES_VALUE: [&str; 34] = [
    "ex",
    "eval-command",
    "iex",
    "init-eval-command",
    "x",
    "command",
    "ix",
    "init-command",
    "eix",
    "early-init-command",
    "eiex",
    "early-init-eval-command",
    "d",
    "directory",
    "D",
    "data-directory",
    "cd",
    "c",
    "core",
    "e",
    "exec",
    "s",
    "symbols",
    "se",
    "i",
    "interpreter",
    "tty",
    "t",
    "b",
    "l",
    "ui",
    "w",
    "annotate",
    "dbx",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn target() -> Target {
        Target { pid: 7, program: Some("/proc/7/root/app".into()), foreign: true }
    }

    #[test]
    fn the_root_and_the_rules_come_before_any_file_and_the_file_before_the_process() {
        let argv = attach("/usr/bin/gdb", &target(), &Wishes::default());
        let at =
            |word: &str| argv.iter().position(|w| w == word).unwrap_or_else(|| panic!("{word}: {argv:?}"));
        assert!(at("set sysroot /proc/7/root") < at("file /proc/7/root/app"));
        assert!(at("set auto-load python-scripts off") < at("file /proc/7/root/app"));
        assert!(at("handle SIGURG nostop noprint pass") < at("attach 7"));
        assert!(at("file /proc/7/root/app") < at("attach 7"));
        assert_eq!(argv[at("set sysroot /proc/7/root") - 1], "-iex");
        assert!(argv.contains(&"set debuginfod enabled off".to_owned()));
    }

    #[test]
    fn a_process_of_the_seats_own_root_needs_none_of_the_targets() {
        let own = Target { pid: 7, program: None, foreign: false };
        let argv = attach("gdb", &own, &Wishes::default());
        assert!(!argv.iter().any(|w| w.contains("/proc/")), "{argv:?}");
    }

    #[test]
    fn the_targets_scripts_run_only_where_that_was_asked_for() {
        let wishes = Wishes { target_scripts: true, ..Wishes::default() };
        let set = settings(Some(&target()), &wishes);
        assert!(set.contains(&"add-auto-load-safe-path /proc/7/root".to_owned()));
        assert!(!set.iter().any(|line| line.contains("scripts off")));
    }

    #[test]
    fn a_launched_program_keeps_its_own_words() {
        let argv = launch("gdb", &words("./prog -p 7 --args x"), &Wishes::default());
        assert!(argv.ends_with(&words("--args ./prog -p 7 --args x")), "{argv:?}");
    }

    #[test]
    fn the_process_is_found_in_the_words_of_others() {
        for (text, want) in [
            ("-p 7", (Some(7), false)),
            ("--pid=7", (Some(7), false)),
            ("-pid 7 -batch", (Some(7), false)),
            ("-q -ex bt /app 7", (Some(7), true)),
            ("-ex 8 /app", (None, true)),
            ("--interpreter=mi", (None, false)),
            ("-i mi /app", (None, true)),
            ("--args prog -p 7", (None, true)),
            ("/app core", (None, true)),
            ("-p", (None, false)),
        ] {
            assert_eq!(asked(&words(text)), want, "{text}");
        }
    }

    #[test]
    fn a_command_that_is_shown_can_be_pasted() {
        let argv = words("/usr/bin/gdb -q").into_iter().chain(["it's a b".to_owned()]).collect::<Vec<_>>();
        assert_eq!(shown(&argv), r"gdb -q 'it'\''s a b'");
    }
}
