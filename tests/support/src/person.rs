//! A person at a laptop: a home folder, an ssh key, a kubeconfig, and the two programs they run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{Ran, run_with};

/// The guard: the home is removed on drop, ssh masters are ended.
pub struct Person {
    home: TempDir,
    podbench: PathBuf,
    /// More variables for each program.
    pub env: Vec<(String, String)>,
}

impl Person {
    /// A person with a key and this kubeconfig. `podbench` is the program under test.
    ///
    /// # Panics
    /// When `ssh-keygen` doesn't work.
    #[must_use]
    pub fn new(podbench: &str, kubeconfig: &str, image: &str) -> Self {
        let person = Self::without_key(podbench, kubeconfig, image);
        let ssh = person.home().join(".ssh");
        std::fs::create_dir_all(&ssh).unwrap();
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "e2e", "-f"])
            .arg(ssh.join("id_ed25519"))
            .status()
            .expect("ssh-keygen");
        assert!(made.success());
        person
    }

    /// A person without an ssh key.
    ///
    /// # Panics
    /// When the temporary folder can't be made.
    #[must_use]
    pub fn without_key(podbench: &str, kubeconfig: &str, image: &str) -> Self {
        let home = tempfile::Builder::new().prefix("pb").tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".kube")).unwrap();
        std::fs::write(home.path().join(".kube/config"), kubeconfig).unwrap();
        let mut env = vec![("PODBENCH_IMAGE".to_owned(), image.to_owned())];
        // Another kubectl than the first on PATH: `./dev test --all` runs the live tests with each.
        if let Ok(kubectl) = std::env::var("PODBENCH_E2E_KUBECTL") {
            env.push(("PODBENCH_KUBECTL".to_owned(), kubectl));
        }
        Self { home, podbench: podbench.into(), env }
    }

    /// The home folder.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The value of one of [`Self::env`].
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        self.env.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.clone())
    }

    /// Any program, in this person's environment and nothing else of the machine's but PATH.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("TERM", "dumb").env("LC_ALL", "C.UTF-8").current_dir(self.home());
        command.envs(self.env.iter().map(|(k, v)| (k, v)));
        command
    }

    /// `podbench` as a command.
    pub fn podbench_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.podbench);
        command.args(args);
        command
    }

    /// Runs `podbench` to its end.
    #[track_caller]
    pub fn podbench(&self, args: &[&str]) -> Ran {
        run_with(self.podbench_command(args), b"", Duration::from_secs(150))
    }

    /// `podbench attach ARGS -o json`, which has to succeed; the report.
    #[track_caller]
    pub fn attach(&self, args: &[&str]) -> serde_json::Value {
        let mut all = vec!["attach"];
        all.extend(args);
        all.extend(["-o", "json"]);
        self.podbench(&all).expect_code(0).json()
    }

    /// The file that an ssh client needs: it includes every stanza.
    #[must_use]
    pub fn ssh_config(&self) -> PathBuf {
        let file = self.home().join("ssh_config");
        std::fs::write(&file, format!("Include {}/.podbench/config.d/*.conf\n", self.home().display()))
            .unwrap();
        file
    }

    /// An OpenSSH program (`ssh`, `scp`, `sftp`) with that file.
    pub fn ssh_command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = self.command(program);
        command.arg("-F").arg(self.ssh_config()).args(args);
        command
    }

    /// Runs `ssh`.
    #[track_caller]
    pub fn ssh(&self, args: &[&str]) -> Ran {
        run_with(self.ssh_command("ssh", args), b"", Duration::from_secs(60))
    }

    /// Ends the master connection of an alias, so that the next connection is a cold one.
    pub fn hang_up(&self, alias: &str) {
        let _ = run_with(self.ssh_command("ssh", &["-O", "exit", alias]), b"", Duration::from_secs(10));
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let stanzas = std::fs::read_dir(self.home().join(".podbench/config.d"));
        for entry in stanzas.into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            for alias in text.lines().filter_map(|l| l.trim().strip_prefix("Host ")) {
                self.hang_up(alias.trim());
            }
        }
    }
}

/// The alias of a report.
#[must_use]
#[track_caller]
pub fn alias(report: &serde_json::Value) -> String {
    report
        .pointer("/ssh/alias")
        .and_then(|a| a.as_str())
        .unwrap_or_else(|| panic!("no ssh in this report: {report:#}"))
        .to_owned()
}
