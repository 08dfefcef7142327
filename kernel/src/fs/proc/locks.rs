//! `/proc/ebb/locks`, in kernels that are built with the feature `check-locks`: which locks were taken while others were held, and for how long locks were held.
//!
//! A line `order FIRST SECOND at PLACE and PLACE` for each two classes of which the second was taken while the first was held, then a line
//! `held CYCLES CLASS at PLACE, COUNT times` for each class, with the longest time for which a lock of it was held (under `-icount shift=0`: in instructions). A class is the place in the
//! source where its locks are made. Whatever is written to the file forgets the times.

use frame::lock_order;

use super::{Entry, setting};

/// The file.
pub const ENTRY: Entry = setting(
    "locks",
    |text, _, _, _| {
        for order in (0..).map_while(lock_order::order) {
            let ([first, second], [one, other]) = (order.made_at, order.taken_at);
            text.add(format_args!(
                "order {}:{} {}:{} at {}:{} and {}:{}\n",
                first.file(),
                first.line(),
                second.file(),
                second.line(),
                one.file(),
                one.line(),
                other.file(),
                other.line()
            ));
        }
        for class in (0..).map_while(lock_order::class) {
            let (made, longest) = (class.made_at, class.longest_at);
            text.add(format_args!(
                "held {} {}:{} at {}:{}, {} times\n",
                class.longest,
                made.file(),
                made.line(),
                longest.file(),
                longest.line(),
                class.taken
            ));
        }
        Ok(())
    },
    |_, _, _, _| {
        lock_order::reset_times();
        Ok(())
    },
);
