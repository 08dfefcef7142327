//! [`Class`]: kinds of things that cost time when their group dies, as a table that is known at compile time; [`Cost`]: how much.
//!
//! A program declares its classes once, with [`classes!`](crate::classes). Each entry names its cost, so a class without one does not compile. The
//! costs there are what counts until a calibration has measured better ones ([`Tree::set_costs`](crate::Tree::set_costs)). Nothing but those costs is
//! ever multiplied in advance: budgets hold counts.

use core::fmt::Debug;

/// What it takes to reclaim one object of a class, in the program's unit of time (nanoseconds, instructions, ticks).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// What must be done at the kill, before it is reported: whatever somebody outside sees. It counts against budgets.
    pub eager: u64,
    /// What may be done afterwards, in bounded steps, when memory is wanted again. It counts against no budget.
    pub deferred: u64,
}

impl Cost {
    /// The largest cost there is; larger ones count as this. Sums of as many as there can be then fit into 128 bits.
    pub const MOST: u64 = 1 << 48;

    /// A cost at the kill.
    pub const fn eager(eager: u64) -> Cost {
        Cost { eager, deferred: 0 }
    }

    /// A cost after the kill.
    pub const fn deferred(deferred: u64) -> Cost {
        Cost { eager: 0, deferred }
    }

    /// The same, no larger than [`MOST`](Self::MOST).
    pub(crate) fn capped(self) -> Cost {
        Cost { eager: self.eager.min(Cost::MOST), deferred: self.deferred.min(Cost::MOST) }
    }
}

/// A program's classes. [`classes!`](crate::classes) implements it for an enumeration.
pub trait Class: Copy + Eq + Debug + Send + Sync + 'static {
    /// A value for each class.
    type PerClass<T: Copy + Debug + Send + Sync>: AsRef<[T]> + AsMut<[T]> + Copy + Debug + Send + Sync;

    /// All of them, each at its [index](Self::index).
    const ALL: &'static [Self];

    /// Its number, below the length of [`ALL`](Self::ALL).
    fn index(self) -> usize;

    /// What it is called where people read it.
    fn name(self) -> &'static str;

    /// What it costs as long as nothing was measured.
    fn assumed(self) -> Cost;

    /// A value for each class, made by `of`.
    fn table<T: Copy + Debug + Send + Sync>(of: impl FnMut(Self) -> T) -> Self::PerClass<T>;
}

/// Declares an enumeration of [classes](Class), each with its cost until it is calibrated.
///
/// ```
/// use groups::{Class, Cost, classes};
///
/// classes! {
///     /// What a client can hold.
///     pub enum Held {
///         /// The end of a client that holds nothing.
///         Base = Cost::eager(2_000),
///         /// Somebody who waits for one of its values.
///         Watch = Cost::eager(300),
///         /// A session with a destructor.
///         Session = Cost::deferred(80),
///     }
/// }
/// assert_eq!(Held::ALL, [Held::Base, Held::Watch, Held::Session]);
/// assert_eq!((Held::Watch.name(), Held::Watch.assumed()), ("Watch", Cost { eager: 300, deferred: 0 }));
/// ```
///
/// A class that does not say its cost is refused:
///
/// ```compile_fail
/// groups::classes! {
///     enum Held { Base = groups::Cost::eager(2_000), Watch }
/// }
/// ```
#[macro_export]
macro_rules! classes {
    ($(#[$meta:meta])* $visibility:vis enum $classes:ident { $($(#[$of_class:meta])* $class:ident = $cost:expr),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        $visibility enum $classes { $($(#[$of_class])* $class),+ }

        impl $crate::Class for $classes {
            type PerClass<T: Copy + ::core::fmt::Debug + Send + Sync> = [T; <[$classes]>::len(&[$($classes::$class),+])];

            const ALL: &'static [Self] = &[$($classes::$class),+];

            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }

            fn name(self) -> &'static str {
                match self { $($classes::$class => ::core::stringify!($class)),+ }
            }

            fn assumed(self) -> $crate::Cost {
                match self { $($classes::$class => $cost),+ }
            }

            fn table<T: Copy + ::core::fmt::Debug + Send + Sync>(of: impl FnMut(Self) -> T) -> Self::PerClass<T> {
                [$($classes::$class),+].map(of)
            }
        }
    };
}
