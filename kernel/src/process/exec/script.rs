//! The first line of a script: `#!interpreter [argument]` (see execve(2), "Interpreter scripts").

/// How much of a file is looked at, as on Linux.
pub const LINE_MAX: usize = 256;

/// The program that a script asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shebang<'a> {
    /// Its path.
    pub interpreter: &'a [u8],
    /// The one argument, which may contain blanks.
    pub argument: Option<&'a [u8]>,
}

/// Its first line names no program, or is cut off within the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadScript;

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim_start(line: &[u8]) -> &[u8] {
    let start = line.iter().position(|byte| !is_blank(byte)).unwrap_or(line.len());
    &line[start..]
}

fn trim_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|byte| !is_blank(byte)).map_or(0, |last| last + 1);
    &line[..end]
}

/// Reads the first line of a file of which `bytes` are the first [`LINE_MAX`], or all; `None` if it is no script.
pub fn parse(bytes: &[u8]) -> Option<Result<Shebang<'_>, BadScript>> {
    let bytes = &bytes[..bytes.len().min(LINE_MAX)];
    let rest = bytes.strip_prefix(b"#!")?;
    let newline = rest.iter().position(|&byte| byte == b'\n');
    let line = trim_start(&rest[..newline.unwrap_or(rest.len())]);
    let name_end = line.iter().position(|byte| is_blank(byte) || *byte == 0);
    let is_whole_file = bytes.len() < LINE_MAX;
    if newline.is_none() && name_end.is_none() && !is_whole_file {
        return Some(Err(BadScript));
    }
    let (interpreter, rest) = line.split_at(name_end.unwrap_or(line.len()));
    if interpreter.is_empty() {
        return Some(Err(BadScript));
    }
    // A zero ends the line, too.
    let rest = rest.split(|&byte| byte == 0).next().unwrap_or_default();
    let argument = Some(trim_end(trim_start(rest))).filter(|argument| !argument.is_empty());
    Some(Ok(Shebang { interpreter, argument }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script<'a>(interpreter: &'a [u8], argument: Option<&'a [u8]>) -> Option<Result<Shebang<'a>, BadScript>> {
        Some(Ok(Shebang { interpreter, argument }))
    }

    #[test]
    fn a_line_is_split_into_a_path_and_one_argument() {
        assert_eq!(parse(b"#!/bin/sh\necho"), script(b"/bin/sh", None));
        assert_eq!(parse(b"#! \t/bin/sh  -e -x \t\n"), script(b"/bin/sh", Some(b"-e -x")));
        assert_eq!(parse(b"#!/bin/sh"), script(b"/bin/sh", None));
        assert_eq!(parse(b"#!/bin/sh\0junk\n"), script(b"/bin/sh", None));
    }

    #[test]
    fn what_names_no_program_is_refused() {
        assert_eq!(parse(b"echo hi\n"), None);
        assert_eq!(parse(b"#"), None);
        assert_eq!(parse(b"#!\n"), Some(Err(BadScript)));
        assert_eq!(parse(b"#!   \n"), Some(Err(BadScript)));
        assert_eq!(parse(b"#!\0"), Some(Err(BadScript)));
    }

    #[test]
    fn a_name_that_is_cut_off_is_refused_but_a_cut_argument_is_not() {
        let mut long = [b'a'; 300];
        long[..3].copy_from_slice(b"#!/");
        assert_eq!(parse(&long), Some(Err(BadScript)));
        long[10] = b' ';
        let Some(Ok(shebang)) = parse(&long) else { panic!("refused") };
        assert_eq!(shebang.interpreter, b"/aaaaaaa");
        assert_eq!(shebang.argument.map(<[u8]>::len), Some(LINE_MAX - 11));
    }
}
