//! `podbench ssh`: into the seat without an ssh configuration. podbench becomes ssh, so the terminal,
//! signals and the exit code are ssh's own.

use std::ffi::OsString;

use super::enter::{self, Here};
use super::{Done, Session};
use crate::cli;
use crate::error::Failure;
use crate::shell::word;
use crate::ssh::run::{Host, OpenSsh};

/// Finds or lands the seat, and becomes ssh.
///
/// # Errors
/// When there is no way in; otherwise it doesn't return.
pub(super) fn run(
    args: &cli::Ssh,
    session: &Session<'_>,
    here: &Here,
    client: &OpenSsh,
) -> Result<Done, Failure> {
    let asked = (args.pod.pod.as_deref(), args.pod.target.as_deref());
    let way = enter::enter(&args.seat, asked, !args.pod.no_prompt, session, here)?;
    Err(client.exec(argv(args, way.host())))
}

/// ssh's words. The first value of an option wins in ssh, so the user's own come first.
fn argv(args: &cli::Ssh, host: Host<'_>) -> Vec<OsString> {
    let mut argv: Vec<OsString> = vec!["-F".into(), host.config.into()];
    argv.extend(args.ssh_args.iter().map(OsString::from));
    let forwards = [("-L", &args.local_forwards), ("-D", &args.dynamic_forwards)];
    if forwards.iter().any(|(_, list)| !list.is_empty()) {
        // A master would keep the port after ctrl-C, and a port that is taken has to be told.
        argv.extend(
            ["-S", "none", "-o", "ControlMaster=no", "-o", "ExitOnForwardFailure=yes"].map(OsString::from),
        );
    }
    for (flag, list) in forwards {
        argv.extend(list.iter().flat_map(|f| [OsString::from(flag), f.into()]));
    }
    if args.no_command {
        argv.push("-N".into());
    }
    argv.extend((0..args.tty.min(2)).map(|_| OsString::from("-t")));
    argv.push(host.alias.into());
    if let Some(command) = remote(&args.command) {
        // A command may begin with a dash.
        argv.extend(["--".into(), command.into()]);
    }
    argv
}

/// ssh joins its words with spaces, and the seat's shell splits them again. One word is meant as a line
/// for that shell; several are meant as they were typed.
fn remote(command: &[String]) -> Option<String> {
    match command {
        [] => None,
        [line] => Some(line.clone()),
        words => Some(words.iter().map(|w| word(w)).collect::<Vec<_>>().join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cli::Verb;

    fn words(line: &[&str]) -> Vec<String> {
        let cli = cli::parse(["podbench", "ssh"].iter().chain(line).map(OsString::from))
            .unwrap_or_else(|e| panic!("{}", e.text(false)));
        let Verb::Ssh(args) = cli.verb else { panic!("another verb") };
        let argv = argv(&args, Host { config: Path::new("/h/a.conf"), alias: "a" });
        argv.into_iter().map(|w| w.into_string().unwrap()).collect()
    }

    #[test]
    fn a_shell_needs_no_more_than_the_stanza() {
        assert_eq!(words(&["api"]), ["-F", "/h/a.conf", "a"]);
        assert_eq!(words(&["api", "-t", "--", "top"]), ["-F", "/h/a.conf", "-t", "a", "--", "top"]);
    }

    #[test]
    fn a_forward_has_a_connection_of_its_own_and_fails_where_its_port_is_taken() {
        let argv = words(&["api", "-N", "-L", "1:localhost:2", "-D", "3", "--ssh-arg=-v"]).join(" ");
        assert_eq!(
            argv,
            "-F /h/a.conf -v -S none -o ControlMaster=no -o ExitOnForwardFailure=yes -L 1:localhost:2 -D 3 -N a"
        );
    }

    #[test]
    fn several_words_are_quoted_and_one_is_a_line() {
        assert_eq!(words(&["api", "--", "ls *.log"]).last().unwrap(), "ls *.log");
        assert_eq!(words(&["api", "--", "ls", "*.log", "a b"]).last().unwrap(), "ls '*.log' 'a b'");
        assert_eq!(words(&["api", "--", "-x"]), ["-F", "/h/a.conf", "a", "--", "-x"]);
    }
}
