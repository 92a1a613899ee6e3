//! The seat's image where nobody names one.

/// The repository of released images: set when podbench is built to be released; absent in a
/// development build.
const REPOSITORY: Option<&str> = option_env!("PODBENCH_IMAGE_REPOSITORY");
/// Set when a released version is built.
const RELEASE: Option<&str> = option_env!("PODBENCH_RELEASE");

/// This build's image; `None`: it knows no repository.
#[must_use]
pub fn derived() -> Option<String> {
    derive(REPOSITORY, RELEASE.is_some_and(|r| !r.is_empty()), env!("CARGO_PKG_VERSION"))
}

/// A release lands the image of its own version, which never changes; a build between two releases
/// lands the newest one of its branch.
fn derive(repository: Option<&str>, release: bool, version: &str) -> Option<String> {
    let repository = repository.filter(|r| !r.is_empty())?;
    Some(format!("{repository}:{}", if release { version } else { "main" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_lands_its_own_version_and_a_development_build_lands_main() {
        assert_eq!(derive(Some("r.example/seat"), true, "1.2.3").as_deref(), Some("r.example/seat:1.2.3"));
        assert_eq!(derive(Some("r.example/seat"), false, "1.2.3").as_deref(), Some("r.example/seat:main"));
    }

    #[test]
    fn without_a_repository_an_image_is_asked_for() {
        assert_eq!(derive(None, true, "1.2.3"), None);
        assert_eq!(derive(Some(""), false, "1.2.3"), None);
    }
}
