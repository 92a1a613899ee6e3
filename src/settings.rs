//! The only reader of the environment, the home folder, the working directory and the terminal.
//! Everything is read once, at the start; nobody else asks.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use podbench_contract::text;

use crate::cli::ClusterArgs;
use crate::config::Config;
use crate::error::Failure;

/// The report's width in columns: where there is no terminal, and at most.
pub const WIDTH: usize = 80;

/// The width of what goes into a log: whoever searches it for a server's words finds them whole.
pub const UNWRAPPED: usize = 1_000_000;

/// Variables that decide how kubectl or its credential plugin reaches the cluster. A shell has
/// them; an editor started from a desktop, and with it `ssh`, often doesn't. None is a secret:
/// proxies are looked at before they are written anywhere (`ssh::stanza`).
const KUBECTL_ENV: [&str; 25] = [
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
    "KUBECTL_REMOTE_COMMAND_WEBSOCKETS",
    "KUBERC",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    // Which account a credential plugin takes: names and paths.
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "CLOUDSDK_ACTIVE_CONFIG_NAME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "TSH_HOME",
    "XDG_CONFIG_HOME",
    // What kubectl falls back to inside a pod, where there is no kubeconfig at all.
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
];

/// What the user's machine says, read once at the start.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `$HOME`.
    pub home: PathBuf,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// `$PATH`.
    pub path: OsString,
    /// `$KUBECONFIG`, as found.
    pub kubeconfig_env: Option<OsString>,
    /// `$PODBENCH_CONFIG_DIR`, else `~/.podbench`; absolute.
    pub config_dir: PathBuf,
    /// `config.toml`, where a verb has asked for it by [`Settings::with_config`].
    pub config: Config,
    /// `$PODBENCH_IMAGE`.
    pub image: Option<String>,
    /// `$PODBENCH_KUBECTL`.
    pub kubectl: Option<OsString>,
    /// `$PODBENCH_TRANSCRIPT`: write every kubectl call there as JSON lines.
    pub transcript: Option<PathBuf>,
    /// `$PODBENCH_CLOCK` is `frozen`: a report's times are 0, so that a recorded run comes out the same.
    pub frozen_clock: bool,
    /// Variables that kubectl honours and that a stanza has to freeze: proxies,
    /// `KUBECTL_REMOTE_COMMAND_WEBSOCKETS`, as found.
    pub kubectl_env: Vec<(String, OsString)>,
    /// The namespace that kubectl takes inside a pod where no kubeconfig names one.
    pub pod_namespace: Option<String>,
    /// Is stdin a terminal?
    pub stdin_tty: bool,
    /// Is stdout a terminal?
    pub stdout_tty: bool,
    /// Is stderr a terminal?
    pub stderr_tty: bool,
    /// Colour on stdout (`NO_COLOR`, `CLICOLOR_FORCE`, `TERM` and the terminal decide).
    pub stdout_color: bool,
    /// Colour on stderr.
    pub stderr_color: bool,
    /// Width of the report in columns, [`WIDTH`] where stdout is no terminal.
    pub width: usize,
    /// Columns of the terminal that stdout is, however wide: for tables. `None`: it is none.
    pub stdout_columns: Option<usize>,
    /// Width of what is said on stderr, [`UNWRAPPED`] where it is no terminal.
    pub stderr_width: usize,
}

impl Settings {
    /// Reads them.
    ///
    /// # Errors
    /// When there is no home or working directory, or one of the paths can't be written into an
    /// ssh configuration.
    pub fn read() -> Result<Self, Failure> {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the working directory")]
        let cwd = std::env::current_dir()
            .map_err(|e| Failure::input("the working directory can't be read").because(e.to_string()))?;
        let home = var("HOME").map(PathBuf::from).filter(|h| h.is_absolute()).ok_or_else(|| {
            Failure::input("HOME is not set to an absolute path, and podbench keeps its ssh stanzas there")
                .hint("export HOME=$(getent passwd $(id -u) | cut -d: -f6)")
        })?;
        let config_dir = match var("PODBENCH_CONFIG_DIR") {
            Some(dir) => plain(cwd.join(dir), "PODBENCH_CONFIG_DIR")?,
            None => plain(home.join(".podbench"), "HOME")?,
        };
        let image = match var("PODBENCH_IMAGE").map(OsString::into_string) {
            None => None,
            Some(Ok(image)) => Some(image),
            Some(Err(_)) => return Err(Failure::input("PODBENCH_IMAGE is not text")),
        };
        let (stdin_tty, stdout_tty, stderr_tty) = (
            std::io::stdin().is_terminal(),
            std::io::stdout().is_terminal(),
            std::io::stderr().is_terminal(),
        );
        Ok(Self {
            path: var("PATH").unwrap_or_default(),
            kubeconfig_env: var("KUBECONFIG"),
            config_dir,
            config: Config::default(),
            image,
            kubectl: var("PODBENCH_KUBECTL"),
            transcript: var("PODBENCH_TRANSCRIPT").map(|p| cwd.join(p)),
            frozen_clock: var("PODBENCH_CLOCK").is_some_and(|v| v == "frozen"),
            kubectl_env: KUBECTL_ENV
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), var(name)?)))
                .collect(),
            pod_namespace: pod_namespace(),
            stdin_tty,
            stdout_tty,
            stderr_tty,
            stdout_color: color(stdout_tty),
            stderr_color: color(stderr_tty),
            width: width(&console::Term::stdout(), WIDTH, WIDTH),
            stdout_columns: console::Term::stdout()
                .size_checked()
                .map(|(_, columns)| usize::from(columns))
                .filter(|columns| stdout_tty && *columns > 0),
            stderr_width: stderr_width(),
            home,
            cwd,
        })
    }

    /// The same with what `config.toml` says: for the verbs that talk to a cluster. A mistake in it is
    /// no reason not to print a completion script.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn with_config(&self) -> Result<Self, Failure> {
        Ok(Self { config: Config::read(&self.config_dir)?, ..self.clone() })
    }

    /// A machine with this home and nothing else: no variables, no terminal. For tests.
    #[must_use]
    pub fn bare(home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        Self {
            config_dir: home.join(".podbench"),
            cwd: home.clone(),
            home,
            path: OsString::from("/usr/local/bin:/usr/bin:/bin"),
            kubeconfig_env: None,
            config: Config::default(),
            image: None,
            kubectl: None,
            transcript: None,
            frozen_clock: false,
            kubectl_env: Vec::new(),
            pod_namespace: None,
            stdin_tty: false,
            stdout_tty: false,
            stderr_tty: false,
            stdout_color: false,
            stderr_color: false,
            width: WIDTH,
            stdout_columns: None,
            stderr_width: UNWRAPPED,
        }
    }
}

/// As client-go finds it; only where there is a server to talk to from inside.
fn pod_namespace() -> Option<String> {
    const FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
    var("KUBERNETES_SERVICE_HOST")?;
    let named = var("POD_NAMESPACE").and_then(|name| name.into_string().ok());
    let name = named.or_else(|| std::fs::read_to_string(FILE).ok())?;
    Some(name.trim().to_owned()).filter(|name| crate::pod::is_dns(name))
}

/// Width of what is said on stderr, for what is said before the settings can be read.
#[must_use]
pub fn stderr_width() -> usize {
    width(&console::Term::stderr(), 120, UNWRAPPED)
}

/// Colour on stderr, for what is said before the settings can be read (help, a wrong flag).
#[must_use]
pub fn stderr_color() -> bool {
    color(std::io::stderr().is_terminal())
}

/// Colour on stdout, likewise.
#[must_use]
pub fn stdout_color() -> bool {
    color(std::io::stdout().is_terminal())
}

/// A variable that is set and not empty: an empty one means unset to kubectl, git and us.
fn var(name: &str) -> Option<OsString> {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    std::env::var_os(name).filter(|v| !v.is_empty())
}

fn color(tty: bool) -> bool {
    decide_color(
        tty,
        var("NO_COLOR").is_some(),
        var("CLICOLOR_FORCE").is_some_and(|v| v != "0"),
        var("TERM").is_some_and(|t| t == "dumb"),
    )
}

const fn decide_color(tty: bool, no_color: bool, force: bool, dumb: bool) -> bool {
    !no_color && (force || (tty && !dumb))
}

fn width(terminal: &console::Term, most: usize, without: usize) -> usize {
    let columns = terminal.size_checked().map(|(_, columns)| usize::from(columns));
    // Below 40 columns wrapped words help nobody, and a very long line is hard to read.
    columns.filter(|n| *n > 0).map_or(without, |n| n.clamp(40, most))
}

/// A path that ssh takes literally. ssh expands `${…}` in the path options of its configuration and
/// knows no way to write it otherwise; a control character would end the line.
///
/// # Errors
/// Names `what` the path came from.
pub(crate) fn plain(path: PathBuf, what: &str) -> Result<PathBuf, Failure> {
    let Some(raw) = path.to_str() else {
        return Err(unusable(&path, what, "it is not UTF-8"));
    };
    if raw.contains("${") {
        return Err(unusable(&path, what, "ssh would expand the `${` in it, and knows no way to escape it"));
    }
    if raw.chars().any(char::is_control) {
        return Err(unusable(
            &path,
            what,
            "it holds a control character, and a line of ssh's configuration can't",
        ));
    }
    Ok(path)
}

fn unusable(path: &Path, what: &str, why: &str) -> Failure {
    let shown = text::escape(&path.to_string_lossy(), 200);
    Failure::input(format!("{what} leads to `{shown}`, which can't stand in an ssh configuration"))
        .because(why)
}

/// What the command line says about the cluster; the same for every verb.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// The kubectl to run: `--kubectl`, `$PODBENCH_KUBECTL`, else `kubectl`; resolved to an absolute path.
    pub kubectl: PathBuf,
    /// `--kubeconfig`, made absolute.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`.
    pub context: Option<String>,
    /// `-n`.
    pub namespace: Option<String>,
    /// `--as`.
    pub as_user: Option<String>,
    /// `--as-group`, repeated.
    pub as_groups: Vec<String>,
    /// `--as-uid`.
    pub as_uid: Option<String>,
    /// `-v`: how much is said on stderr.
    pub verbosity: u8,
}

impl Cluster {
    /// Puts the command line and the machine together. No process is started.
    ///
    /// # Errors
    /// When there is no kubectl to run.
    pub fn resolve(args: &ClusterArgs, settings: &Settings) -> Result<Self, Failure> {
        Ok(Self {
            kubectl: kubectl(args, settings)?,
            kubeconfig: args.kubeconfig.as_ref().map(|p| settings.cwd.join(p)),
            context: args.context.clone(),
            namespace: args.namespace.clone(),
            as_user: args.as_user.clone(),
            as_groups: args.as_groups.clone(),
            as_uid: args.as_uid.clone(),
            verbosity: args.verbosity(),
        })
    }
}

/// What a kubectl that no flag and no variable names comes from.
const CONFIG: &str = "config.toml";

fn kubectl(args: &ClusterArgs, settings: &Settings) -> Result<PathBuf, Failure> {
    // The current context's name is known only through kubectl, so its table counts where it is typed.
    let default = settings.config.of(args.context.as_deref()).kubectl;
    let (wanted, whence) = match (&args.kubectl, &settings.kubectl, &default) {
        (Some(flag), ..) => (flag.as_os_str(), Some("--kubectl")),
        (None, Some(var), _) => (var.as_os_str(), Some("PODBENCH_KUBECTL")),
        (None, None, Some(default)) => (default.as_os_str(), Some(CONFIG)),
        (None, None, None) => (OsStr::new("kubectl"), None),
    };
    // Absolute, because ssh runs it later from wherever it is; a `kubectl` of a relative PATH entry
    // would be another one there.
    let found = which::which_in(wanted, Some(&settings.path), &settings.cwd).ok().filter(|p| p.is_absolute());
    let named = settings.cwd.join(wanted);
    found.ok_or_else(|| match whence {
        Some(whence) => {
            let shown = text::escape(&wanted.to_string_lossy(), 200);
            let why = if named.is_file() { "it isn't executable" } else { "there is no such program" };
            let failure = Failure::input(format!("{whence} names `{shown}`, and {why}"));
            if whence != CONFIG {
                return failure;
            }
            let file = settings.config.file().to_string_lossy();
            failure
                .because(format!("the file is {}", text::escape(&file, 200)))
                .hint(format!("${{EDITOR:-vi}} {}", crate::shell::word(&file)))
        }
        None => Failure::input("kubectl is not on PATH, and podbench reaches the cluster through it")
            .because("name another with --kubectl BIN or PODBENCH_KUBECTL")
            .hint("podbench attach --kubectl /path/to/kubectl"),
    })
}

#[cfg(test)]
mod tests;
