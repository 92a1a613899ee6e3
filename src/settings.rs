//! The only reader of the environment, the home folder, the working directory and the terminal.

use std::ffi::OsString;
use std::path::PathBuf;

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
    /// `$PODBENCH_CONFIG_DIR`, else `~/.podbench`.
    pub config_dir: PathBuf,
    /// `$PODBENCH_IMAGE`.
    pub image: Option<String>,
    /// `$PODBENCH_TRANSCRIPT`: write every kubectl call there as JSON lines.
    pub transcript: Option<PathBuf>,
    /// Variables that kubectl honours and that a stanza has to freeze: proxies,
    /// `KUBECTL_REMOTE_COMMAND_WEBSOCKETS`, as found.
    pub kubectl_env: Vec<(String, OsString)>,
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
    /// Width of the report in columns, 80 where there is no terminal.
    pub width: usize,
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
