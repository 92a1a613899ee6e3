//! Words to a verb, and the help. What a verb takes is decided here and nowhere else.

use std::ffi::OsString;

use lexopt::prelude::*;
use podbench_contract::ids::ContainerId;
use podbench_contract::keys::PublicKey;

use crate::dbg::Wishes;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Show a help text.
    Help(&'static str),
    /// Show the version.
    Version,
    /// Be the seat's first process.
    Agent,
    /// Ask the agent to end the seat.
    Stop,
    /// Print the login that sshd will accept.
    PrintLoginUser,
    /// Print the host's public key.
    PrintHostKey {
        /// Only when a connection inside the seat works.
        check: bool,
    },
    /// Carry one ssh connection.
    Session,
    /// Measure the seat.
    Measure(Measure),
    /// Say what a debugger can do here, and what stops the rest.
    Capreport(Capreport),
    /// List processes.
    Pids(Pids),
    /// Debug with gdb.
    Dbg(Dbg),
    /// Hidden: wait for a debugger's end and put right what it left in these processes.
    Guard(Vec<u32>),
    /// Hidden: clear the signal mask and become a program.
    Exec(Vec<String>),
    /// Hidden: connect to the seat's own sshd and say how far that came.
    Check {
        /// The runtime folder.
        runtime: String,
        /// The login.
        login: String,
    },
    /// Hidden: `PTRACE_SEIZE` a process and leave.
    ProbeSeize(i32),
    /// Hidden: `PTRACE_SEIZE` a child of one's own.
    ProbeChild,
    /// Hidden: open a packet socket.
    ProbePackets,
    /// Hidden: be that child.
    ProbeHold,
}

/// What `measure` takes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    /// In the envelope that the launcher wants.
    pub(crate) framed: bool,
    /// The target's container id, from the pod's status.
    pub(crate) cid: Option<ContainerId>,
    /// One more key that may log in.
    pub(crate) authorize: Option<PublicKey>,
    /// Don't try ptrace.
    pub(crate) no_probe: bool,
}

/// What `capreport` takes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Capreport {
    /// This process instead of the target's best.
    pub(crate) pid: Option<u32>,
    /// JSON instead of text.
    pub(crate) json: bool,
    /// The target's container id.
    pub(crate) cid: Option<ContainerId>,
}

/// What `pids` takes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pids {
    /// The target's processes only.
    pub(crate) targets: bool,
    /// JSON instead of text.
    pub(crate) json: bool,
    /// The target's container id.
    pub(crate) cid: Option<ContainerId>,
}

/// What `dbg` takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dbg {
    /// What gdb is to do.
    pub(crate) work: Work,
    /// The target's container id.
    pub(crate) cid: Option<ContainerId>,
    /// What gdb is to know beside.
    pub(crate) wishes: Wishes,
    /// Take a core dump, into this folder or one with room.
    pub(crate) core: Option<Option<String>>,
    /// Print the command instead.
    pub(crate) dry_run: bool,
    /// More words for gdb.
    pub(crate) more: Vec<String>,
}

/// What gdb is to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Attach to this process, or to the target's best.
    Attach(Option<u32>),
    /// Start this program.
    Launch(Vec<String>),
}

const HELP: &str = "  podbench capreport            what a debugger can do here, and what stops the rest
  podbench dbg                  gdb on the target's process
  podbench pids --targets       the target's processes, the best one first
  podbench measure              everything that was measured of this seat
  podbench stop                 end this seat and everything it runs

Usage: podbench VERB [OPTIONS]        (in a seat; podbench on your own machine lands one)

Verbs:
  capreport [PID]   try ptrace and the reads on the target (or on PID) and say what works
  dbg [PID]         gdb on the target's best process (or on PID), with the target's files
  pids              list the processes that this seat sees, and whose they are
  measure           print everything measured: seat, login, sshd, kernel, target, memory
  agent             be the seat's first process; or ask about it (podbench agent --help)
  stop              end every process of this seat; the application is not touched

Options:
  -h, --help        this, or a verb's own help
  -V, --version     the version

Exit codes: 0 done, 1 podbench's own error, 2 the input was wrong.
";

const AGENT_HELP: &str = "  podbench agent --print-login-user                  the name to give to ssh
  podbench agent --print-host-key                    after a connection inside the seat worked
  podbench agent --print-host-key --no-self-check    without trying one
  podbench agent --stop                              end this seat

Usage: podbench agent [OPTION]

Without an option: be the seat's first process. It makes what sshd needs, carries ssh sessions,
reaps what they leave behind, and sleeps.

Options:
      --print-login-user   print the login that sshd will accept
      --print-host-key     print the host's public key
      --no-self-check      with --print-host-key: don't connect first
      --stop               end every process of this seat
  -h, --help               this
";

const MEASURE_HELP: &str = "  podbench measure                       indented JSON, for people and jq
  podbench measure --no-probe            without trying ptrace
  podbench measure --cid=CONTAINER_ID    the target's id as the pod's status has it now

Usage: podbench measure [OPTIONS]

Nothing here stops the target: it is seized without interrupt, by a process that ends at once.

Options:
      --json             the reply in an envelope (length and digest), for the launcher
      --cid ID           the target's container id; trusted, unlike the environment's
      --authorize KEY    let one more public key log in
      --no-probe         don't try ptrace
  -h, --help             this
";

const CAPREPORT_HELP: &str = "  podbench capreport             the target's best process
  podbench capreport 42          process 42
  podbench capreport --json      the readings, the verdict and the blockers as JSON

Usage: podbench capreport [PID] [OPTIONS]

Options:
      --json                JSON instead of text
      --container-id ID     whose processes are the target's
  -h, --help                this

Exit codes: 0 a debugger can attach, 10 reads only, 15 only what a debugger starts itself, 20 nothing.
";

const PIDS_HELP: &str = "  podbench pids                  every process that this seat sees, and whose it is
  podbench pids --targets        the target's, best first
  podbench pids -o json          the same as JSON

Usage: podbench pids [OPTIONS]

Options:
      --targets             only the target's processes
  -o, --output json         JSON instead of a table; --json is the same
      --container-id ID     whose processes are the target's
  -h, --help                this
";

const DBG_HELP: &str = "  podbench dbg                            gdb on the target's best process
  podbench dbg 42                         gdb on process 42
  podbench dbg -- -batch -ex bt           more words for gdb: a backtrace, and out again
  podbench dbg --core                     a core dump, and gdb on that: the target goes on at once
  podbench dbg --launch ./prog --its-flag gdb starts a program of the seat's
  podbench dbg --dry-run                  the gdb command alone, to paste or to change

Usage: podbench dbg [PID] [OPTIONS] [-- GDB-WORDS...]

First it looks at what the kernel allows; where a debugger can't attach it says what stops it. gdb reads
the target's own files. However gdb ends, none of its breakpoints stays in the target.

Options:
      --launch PROG...      start PROG under gdb; what follows are its words
      --source-dir DIR      where sources are in the seat (repeatable)
      --target-scripts      let gdb run the scripts that the target's files bring. They run as you, in
                            gdb: only where you trust the target's image
      --core                dump the target's memory into a file, let it go, and open the file; without a
                            terminal the file's name is printed
      --core-dir DIR        the folder for it; it may take as much room as the target's memory
      --dry-run             print the gdb command, run nothing
      --container-id ID     whose processes are the target's
  -h, --help                this

The gdb on PATH in a seat does the same for `gdb -p PID`, so that editors and scripts find the target's files.

Exit codes: gdb's own; 2 nothing to debug; where no debugger can attach 10, 15 or 20, as capreport.
";

const STOP_HELP: &str = "  podbench stop        end every process of this seat, the agent last

Usage: podbench stop

The container ends with the agent; its name stays in the pod. The application is not touched.
";

/// Reads the words.
pub(crate) fn parse(words: Vec<OsString>) -> Result<Verb, lexopt::Error> {
    let mut args = lexopt::Parser::from_args(words);
    match args.next()? {
        None | Some(Short('h') | Long("help")) => Ok(Verb::Help(HELP)),
        Some(Short('V') | Long("version")) => Ok(Verb::Version),
        Some(Value(verb)) => parse_verb(&verb.string()?, &mut args),
        Some(other) => Err(other.unexpected()),
    }
}

fn parse_verb(verb: &str, args: &mut lexopt::Parser) -> Result<Verb, lexopt::Error> {
    match verb {
        "agent" => agent(args),
        "session" => alone(args, Verb::Session, HELP),
        "stop" => alone(args, Verb::Stop, STOP_HELP),
        "version" => alone(args, Verb::Version, HELP),
        "help" => Ok(Verb::Help(HELP)),
        "measure" => measure(args),
        "capreport" => capreport(args),
        "pids" => pids(args),
        "dbg" => dbg(args),
        "guard" => Ok(Verb::Guard(
            rest(args)?
                .iter()
                .map(|pid| pid.parse())
                .collect::<Result<_, _>>()
                .map_err(|_| "a pid is a number")?,
        )),
        "exec" => {
            let mut argv = rest(args)?;
            if argv.first().is_some_and(|w| w == "--") {
                argv.remove(0);
            }
            Ok(Verb::Exec(argv))
        }
        "probe-seize" => {
            let pid = args.value()?.parse()?;
            alone(args, Verb::ProbeSeize(pid), HELP)
        }
        "probe-child" => alone(args, Verb::ProbeChild, HELP),
        "probe-packets" => alone(args, Verb::ProbePackets, HELP),
        "probe-hold" => alone(args, Verb::ProbeHold, HELP),
        "check" => {
            let (runtime, login) = (args.value()?.string()?, args.value()?.string()?);
            alone(args, Verb::Check { runtime, login }, HELP)
        }
        other => Err(format!("there is no verb `{}`", podbench_contract::text::escape(other, 40)).into()),
    }
}

fn alone(args: &mut lexopt::Parser, verb: Verb, help: &'static str) -> Result<Verb, lexopt::Error> {
    match args.next()? {
        None => Ok(verb),
        Some(Short('h') | Long("help")) => Ok(Verb::Help(help)),
        Some(other) => Err(other.unexpected()),
    }
}

fn agent(args: &mut lexopt::Parser) -> Result<Verb, lexopt::Error> {
    let mut verb = Verb::Agent;
    let mut check = true;
    while let Some(arg) = args.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(Verb::Help(AGENT_HELP)),
            Long("print-login-user") => verb = Verb::PrintLoginUser,
            Long("print-host-key") => verb = Verb::PrintHostKey { check: true },
            Long("stop") => verb = Verb::Stop,
            Long("no-self-check") => check = false,
            other => return Err(other.unexpected()),
        }
    }
    Ok(match verb {
        Verb::PrintHostKey { .. } => Verb::PrintHostKey { check },
        other => other,
    })
}

fn measure(args: &mut lexopt::Parser) -> Result<Verb, lexopt::Error> {
    let mut asked = Measure::default();
    while let Some(arg) = args.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(Verb::Help(MEASURE_HELP)),
            Long("json") => asked.framed = true,
            Long("no-probe") => asked.no_probe = true,
            Long("cid") => asked.cid = Some(container_id(args)?),
            Long("authorize") => {
                let key = PublicKey::parse(&args.value()?.string()?);
                asked.authorize = Some(key.map_err(|e| lexopt::Error::Custom(Box::new(e)))?);
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(Verb::Measure(asked))
}

fn capreport(args: &mut lexopt::Parser) -> Result<Verb, lexopt::Error> {
    let mut asked = Capreport::default();
    while let Some(arg) = args.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(Verb::Help(CAPREPORT_HELP)),
            Long("json") => asked.json = true,
            Short('o') | Long("output") => asked.json = is_json(args)?,
            Long("container-id") => asked.cid = Some(container_id(args)?),
            Value(pid) if asked.pid.is_none() => asked.pid = Some(pid.parse()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Verb::Capreport(asked))
}

fn pids(args: &mut lexopt::Parser) -> Result<Verb, lexopt::Error> {
    let mut asked = Pids::default();
    while let Some(arg) = args.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(Verb::Help(PIDS_HELP)),
            Long("json") => asked.json = true,
            Long("targets") => asked.targets = true,
            Short('o') | Long("output") => asked.json = is_json(args)?,
            Long("container-id") => asked.cid = Some(container_id(args)?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Verb::Pids(asked))
}

fn dbg(args: &mut lexopt::Parser) -> Result<Verb, lexopt::Error> {
    let mut pid = None;
    let mut asked = Dbg {
        work: Work::Attach(None),
        cid: None,
        wishes: Wishes::default(),
        core: None,
        dry_run: false,
        more: Vec::new(),
    };
    loop {
        // What stands behind `--` is gdb's.
        if args.raw_args()?.peek().is_some_and(|word| word == "--") {
            asked.more = rest(args)?.split_off(1);
            break;
        }
        match args.next()? {
            None => break,
            Some(Short('h') | Long("help")) => return Ok(Verb::Help(DBG_HELP)),
            Some(Long("launch")) => {
                let mut program = vec![args.value()?.string()?];
                program.extend(rest(args)?);
                asked.work = Work::Launch(program);
                break;
            }
            Some(Long("source-dir")) => asked.wishes.sources.push(args.value()?.string()?),
            Some(Long("target-scripts")) => asked.wishes.target_scripts = true,
            Some(Long("core")) => asked.core = asked.core.or(Some(None)),
            Some(Long("core-dir")) => asked.core = Some(Some(args.value()?.string()?)),
            Some(Long("dry-run")) => asked.dry_run = true,
            Some(Long("container-id")) => asked.cid = Some(container_id(args)?),
            Some(Value(value)) if pid.is_none() => pid = Some(value.parse()?),
            Some(other) => return Err(other.unexpected()),
        }
    }
    match asked.work {
        Work::Attach(_) => asked.work = Work::Attach(pid),
        Work::Launch(_) if pid.is_some() || asked.core.is_some() => {
            return Err("--launch starts a process: it takes neither a PID nor --core".into());
        }
        Work::Launch(_) => {}
    }
    Ok(Verb::Dbg(asked))
}

/// Every word that is left.
fn rest(args: &mut lexopt::Parser) -> Result<Vec<String>, lexopt::Error> {
    args.raw_args()?.map(|word| word.string()).collect()
}

fn container_id(args: &mut lexopt::Parser) -> Result<ContainerId, lexopt::Error> {
    ContainerId::parse(&args.value()?.string()?).map_err(|e| lexopt::Error::Custom(Box::new(e)))
}

fn is_json(args: &mut lexopt::Parser) -> Result<bool, lexopt::Error> {
    match args.value()?.string()?.as_str() {
        "json" => Ok(true),
        "text" => Ok(false),
        other => {
            Err(format!("-o takes json or text, not `{}`", podbench_contract::text::escape(other, 40)).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use podbench_contract::session;

    use super::*;

    fn read<const N: usize>(words: [&str; N]) -> Result<Verb, lexopt::Error> {
        parse(words.into_iter().map(OsString::from).collect())
    }

    #[test]
    fn what_the_launcher_runs_is_understood() {
        let own = |argv: &[&str]| parse(argv.iter().skip(1).map(OsString::from).collect()).unwrap();
        assert_eq!(own(&session::agent_argv()), Verb::Agent);
        assert_eq!(own(&session::session_argv()), Verb::Session);
        let cid = ContainerId::parse("0123456789abcdef").unwrap();
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1p a b";
        let key = PublicKey::parse(key).unwrap();
        let argv = session::measure_argv(Some(&cid), Some(&key), false);
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let want = Measure { framed: true, cid: Some(cid), authorize: Some(key), no_probe: true };
        assert_eq!(own(&words), Verb::Measure(want));
    }

    #[test]
    fn the_spellings_for_people_are_understood() {
        assert_eq!(read(["agent", "--print-login-user"]).unwrap(), Verb::PrintLoginUser);
        assert_eq!(read(["agent", "--print-host-key"]).unwrap(), Verb::PrintHostKey { check: true });
        for words in [
            ["agent", "--no-self-check", "--print-host-key"],
            ["agent", "--print-host-key", "--no-self-check"],
        ] {
            assert_eq!(read(words).unwrap(), Verb::PrintHostKey { check: false });
        }
        let asked = Capreport { pid: Some(42), json: true, cid: None };
        assert_eq!(read(["capreport", "42", "--json"]).unwrap(), Verb::Capreport(asked));
        let asked = Pids { targets: true, json: true, cid: None };
        assert_eq!(read(["pids", "--targets", "-o", "json"]).unwrap(), Verb::Pids(asked));
        assert_eq!(read(["--version"]).unwrap(), Verb::Version);
        assert_eq!(read([]).unwrap(), Verb::Help(HELP));
    }

    #[test]
    fn every_help_begins_with_examples() {
        for verb in ["agent", "measure", "capreport", "dbg", "pids", "stop"] {
            let Verb::Help(text) = read([verb, "--help"]).unwrap() else { panic!("{verb}") };
            assert!(text.starts_with(&format!("  podbench {verb}")), "{verb}");
        }
        assert!(HELP.starts_with("  podbench "));
    }

    #[test]
    fn a_program_keeps_its_own_flags() {
        let argv = vec!["sshd".to_owned(), "-i".to_owned(), "--".to_owned(), "x".to_owned()];
        assert_eq!(read(["exec", "--", "sshd", "-i", "--", "x"]).unwrap(), Verb::Exec(argv));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for words in [
            vec!["nonsense"],
            vec!["session", "/bin/sh"],
            vec!["measure", "--cid=short"],
            vec!["measure", "--authorize=x"],
            vec!["capreport", "1", "2"],
            vec!["pids", "-o", "yaml"],
            vec!["--frobnicate"],
        ] {
            assert!(parse(words.iter().map(OsString::from).collect()).is_err(), "{words:?}");
        }
    }
}
