//! Could the user's credentials come from a plugin? Only a hint, and only ever the safe way round:
//! which context counts, and what its user is, kubectl says.
//!
//! Two plugins started at once may ask a person twice, so with one the user is asked for after the
//! first call. Without any there is nothing to wait for, and a kubectl takes most of its time to start.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::settings::{Cluster, Settings};

/// A kubeconfig of hundreds of clusters has a few hundred kilobytes.
const MOST: u64 = 8 << 20;

/// Does any kubeconfig that kubectl would read hold a plugin, whoever's it is?
#[must_use]
pub fn is_possible(settings: &Settings, cluster: &Cluster) -> bool {
    let files: Vec<PathBuf> = match (&cluster.kubeconfig, &settings.kubeconfig_env) {
        (Some(file), _) => vec![file.clone()],
        (None, Some(list)) => std::env::split_paths(list).map(|p| settings.cwd.join(p)).collect(),
        (None, None) => vec![settings.home.join(".kube/config")],
    };
    files.iter().any(|file| holds_plugin(file))
}

/// A file that isn't there holds none; one that can't be read may.
fn holds_plugin(file: &Path) -> bool {
    let mut text = Vec::new();
    match std::fs::File::open(file) {
        Ok(file) => file.take(MOST).read_to_end(&mut text).is_err() || names_plugin(&text),
        Err(e) => e.kind() != std::io::ErrorKind::NotFound,
    }
}

/// YAML or JSON, in any layout: the key of a plugin is spelled out in either.
fn names_plugin(text: &[u8]) -> bool {
    const KEYS: [&[u8]; 2] = [b"exec", b"auth-provider"];
    KEYS.iter().any(|key| text.windows(key.len()).any(|w| w == *key)) || text.len() as u64 >= MOST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_in_any_file_of_the_list_counts() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name)
        };
        let plain = file("plain", "users: [{name: a, user: {token: x}}]");
        let plugin = file("plugin", "users:\n- name: a\n  user:\n    exec:\n      command: aws\n");
        let ask = |paths: &[&PathBuf]| {
            let mut settings = Settings::bare(dir.path());
            settings.kubeconfig_env = Some(std::env::join_paths(paths).unwrap());
            is_possible(&settings, &Cluster::default())
        };
        assert!(!ask(&[&plain]));
        assert!(!ask(&[&plain, &dir.path().join("missing")]));
        assert!(ask(&[&plain, &plugin]));
        let flag = Cluster { kubeconfig: Some(plugin), ..Cluster::default() };
        assert!(is_possible(&Settings::bare(dir.path()), &flag));
        assert!(!is_possible(&Settings::bare(dir.path()), &Cluster::default()));
    }
}
