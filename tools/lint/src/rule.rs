//! The rules: their names, and what each asks for.

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A call that may suspend stands where nothing may suspend.
    CallOutsideAsync,
    /// A function says that it may suspend and calls nothing that does.
    AsyncNeverSuspends,
    /// A function that may suspend is not called but stored, passed or turned into a pointer.
    AsyncAsValue,
    /// A function can suspend (it takes the context) and does not say so.
    CxWithoutSuffix,
    /// A function says that it may suspend and has no right to (it takes no context).
    SuffixWithoutCx,
    /// A mark that does not exist.
    UnknownMark,
}

impl Rule {
    /// All rules.
    pub const ALL: [Rule; 6] = [
        Rule::CallOutsideAsync,
        Rule::AsyncNeverSuspends,
        Rule::AsyncAsValue,
        Rule::CxWithoutSuffix,
        Rule::SuffixWithoutCx,
        Rule::UnknownMark,
    ];

    /// Its name, as in `ebb::async_as_value`.
    pub fn name(self) -> &'static str {
        match self {
            Rule::CallOutsideAsync => "call_outside_async",
            Rule::AsyncNeverSuspends => "async_never_suspends",
            Rule::AsyncAsValue => "async_as_value",
            Rule::CxWithoutSuffix => "cx_without_suffix",
            Rule::SuffixWithoutCx => "suffix_without_cx",
            Rule::UnknownMark => "unknown_mark",
        }
    }

    /// What it asks for, and how to say that a place is an exception.
    pub fn explanation(self) -> &'static str {
        match self {
            Rule::CallOutsideAsync => {
                "A function whose name ends in `_async` may suspend the task that calls it. It may be called in functions whose names end in \
                 `_async` themselves, so that a reader sees at every call whether others may run meanwhile. A closure is a body of its \
                 own: it may suspend if it takes `&mut Cx` as a parameter; capturing a context is not enough, because whoever \
                 calls the closure would not know. The same holds for calls through pointers and closures that are given `&mut Cx`. \
                 Code that starts tasks, and so makes the context, is marked `#[cfg_attr(false, ebb_lint::root)]`."
            }
            Rule::AsyncNeverSuspends => {
                "A function whose name ends in `_async` and that calls nothing that may suspend promises what it does not do: rename it. \
                 What suspends by itself, such as a switch of stacks, is marked `#[cfg_attr(false, ebb_lint::leaf)]`. Methods of a trait's \
                 implementation are exempt: the trait chose the name, for other implementations."
            }
            Rule::AsyncAsValue => {
                "A pointer to a function that may suspend has lost its name, and with it the suffix. Call the function where it is needed, \
                 or pass a closure that takes the context. A table of functions, whose user calls them with the context, is \
                 marked `#[cfg_attr(false, ebb_lint::table)]`."
            }
            Rule::CxWithoutSuffix => {
                "Whoever has `&mut Cx` may suspend, so a function that takes it is called `_async`. What needs no right to suspend takes \
                 `&Cx`. What takes `&mut Cx` only as a proof that the caller has borrowed nothing is marked \
                 `#[cfg_attr(false, ebb_lint::never_suspends)]`; it cannot call what suspends either."
            }
            Rule::SuffixWithoutCx => {
                "A function that may suspend takes `cx: &mut Cx`: without it, it could only suspend behind the borrow checker's back. \
                 A function whose name ends in `_async` for another reason is marked `#[cfg_attr(false, ebb_lint::unrelated)]`."
            }
            Rule::UnknownMark => "The marks are leaf, root, table, never_suspends and unrelated.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own_and_an_explanation() {
        let mut names: Vec<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Rule::ALL.len());
        assert!(Rule::ALL.iter().all(|rule| rule.explanation().len() > 40));
    }
}
