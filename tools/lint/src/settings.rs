//! What a package says about itself in its `Cargo.toml`, for what cannot be marked in its source.
//!
//! ```toml
//! [package.metadata.ebb-lint]
//! context = ["Cx"]
//! leaf = ["worker::switch_async"]
//! unrelated = ["lodepng::load_async"]
//! ```

use std::path::Path;

use crate::signature::plain_path;
use crate::source::Mark;

/// The settings of one package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The names of the type that is the right to suspend. If there are none, the rules about it are off.
    pub contexts: Vec<String>,
    listed: Vec<(Mark, Vec<String>)>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { contexts: vec!["Cx".to_owned()], listed: Vec::new() }
    }
}

impl Settings {
    /// Reads the settings of the package in `folder`.
    ///
    /// # Errors
    /// A text for the user: the file cannot be read, or a setting is not known.
    pub fn read(folder: &Path) -> Result<Settings, String> {
        let file = folder.join("Cargo.toml");
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        Settings::parse(&text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Reads the settings from the text of a `Cargo.toml`.
    ///
    /// # Errors
    /// A text for the user: it is not TOML, or a setting is not known.
    pub fn parse(text: &str) -> Result<Settings, String> {
        let manifest: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let table = ["package", "metadata", "ebb-lint"]
            .iter()
            .try_fold(&manifest, |table, name| table.get(*name).and_then(toml::Value::as_table));
        let mut settings = Settings::default();
        for (name, value) in table.into_iter().flatten() {
            let strings = value
                .as_array()
                .and_then(|values| {
                    values.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
                })
                .ok_or_else(|| format!("package.metadata.ebb-lint.{name}: an array of strings is expected"))?;
            match Mark::parse(&name.replace('-', "_")) {
                Some(mark) => settings.listed.extend(strings.iter().map(|path| (mark, plain_path(path)))),
                None if name == "context" => settings.contexts = strings,
                None => return Err(format!("package.metadata.ebb-lint.{name}: there is no such setting")),
            }
        }
        Ok(settings)
    }

    /// Whether the function is in the list for `mark`. Lists name paths from the end (`switch_async` and `worker::switch_async` both
    /// mean `tasks::worker::switch_async`), and `*` is every function of the crate.
    pub fn lists(&self, mark: Mark, path: &str) -> bool {
        if self.listed.is_empty() {
            return false;
        }
        let path = plain_path(path);
        self.listed.iter().any(|(listed, names)| *listed == mark && (names == &["*"] || path.ends_with(names)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_listed_from_their_end() {
        let settings =
            Settings::parse("[package.metadata.ebb-lint]\nleaf = [\"worker::switch_async\"]\nnever-suspends = [\"f\"]")
                .unwrap();
        assert!(settings.lists(Mark::Leaf, "tasks::worker::switch_async"));
        assert!(!settings.lists(Mark::Leaf, "tasks::other_worker::switch_async"));
        assert!(!settings.lists(Mark::Root, "tasks::worker::switch_async"));
        assert!(settings.lists(Mark::NeverSuspends, "<X as a::T>::f::<u8>"));
        assert_eq!(settings.contexts, ["Cx"]);
        let settings = Settings::parse("[package.metadata.ebb-lint]\nnever-suspends = [\"*\"]").unwrap();
        assert!(settings.lists(Mark::NeverSuspends, "a::b"));
    }

    #[test]
    fn without_settings_the_defaults_hold() {
        assert_eq!(Settings::parse("[package]\nname = \"a\""), Ok(Settings::default()));
    }

    #[test]
    fn unknown_settings_are_errors() {
        assert!(Settings::parse("[package.metadata.ebb-lint]\nleafs = []").unwrap_err().contains("leafs"));
        assert!(Settings::parse("[package.metadata.ebb-lint]\nleaf = \"f\"").unwrap_err().contains("array"));
        assert!(Settings::parse("[[").is_err());
    }
}
