//! What the programs in `examples/` have in common.

use groups::{Arena, Budget, Chunks, Contents, Cost, Group, Limits, Mortuary, Scrub, Tree, classes};

classes! {
    /// Classes.
    pub enum Held {
        /// A group's end.
        Base = Cost::eager(100),
        /// A link.
        Link = Cost::eager(10),
    }
}

/// What a group has.
pub struct Client<'p> {
    /// Plain objects.
    pub entries: Arena<'p, u64>,
}

impl Contents for Client<'_> {
    fn scrub(&mut self, scrub: &mut Scrub) {
        self.entries.scrub(scrub);
    }
}

/// A group.
pub fn group<'t, 'm>(parent: Budget<'t, Held>, pool: &'m Chunks) -> Group<'t, 'm, Held, Client<'m>> {
    Group::new(parent, Limits::bound(1_000), Held::Base, |_| Client { entries: Arena::new(pool) }).unwrap()
}

/// All that a group needs.
pub fn world() -> (Tree<Held>, Chunks) {
    (Tree::new(), Chunks::new(8))
}

/// Kills a group.
pub fn kill<'m>(group: Group<'_, 'm, Held, Client<'m>>, mortuary: &Mortuary<'m>) {
    group.kill(mortuary, &|| 0);
}
