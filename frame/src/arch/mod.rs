//! One folder for each architecture; the rest of `frame` sees only what is re-exported here.
