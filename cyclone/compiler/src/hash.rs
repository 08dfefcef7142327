//! Tables whose keys are numbers and names of the compiler's own making, for which a quick hash will do.

use rustc_hash::FxBuildHasher;

/// A map of keys that no adversary chooses.
pub type HashMap<K, V> = hashbrown::HashMap<K, V, FxBuildHasher>;

/// A set of such keys.
pub type HashSet<K> = hashbrown::HashSet<K, FxBuildHasher>;
