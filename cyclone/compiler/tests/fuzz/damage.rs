//! What is done to programs, and how to undo what does not matter of it.

use super::corpus::{Corpus, Program};
use super::random::Random;

/// A text in words. Headers come first and stay as they are.
#[derive(Clone)]
pub struct Text {
    headers: String,
    words: Vec<String>,
}

impl Text {
    pub fn own(&self) -> String {
        self.words.concat()
    }

    pub fn whole(&self) -> String {
        format!("{}\n{}", self.headers, self.own())
    }
}

/// Cuts a text wherever a word, a number, a literal or a sign ends; blanks go with what is before them. About as the compiler does,
/// but nothing depends on that.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if first.is_alphanumeric() || "_`@\\".contains(first) {
            let after = rest[first.len_utf8()..].find(|c: char| !c.is_alphanumeric() && !"_.".contains(c));
            after.map_or(rest.len(), |at| at + first.len_utf8())
        } else if first == '"' || first == '\'' {
            literal(rest, first)
        } else {
            SIGNS.iter().find(|sign| rest.starts_with(**sign)).map_or(first.len_utf8(), |sign| sign.len())
        };
        let blanks = rest[length..].find(|c: char| !c.is_whitespace()).unwrap_or(rest.len() - length);
        words.push(rest[..length + blanks].to_owned());
        rest = &rest[length + blanks..];
    }
    words
}

const SIGNS: &[&str] = &[
    ":=:", "...", "<<=", ">>=", "::", "->", "++", "--", "&&", "||", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=",
    "$(",
];

/// The length of the literal that `text` begins with.
fn literal(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// One of the programs with up to four damages, mostly one.
pub fn damaged_program(corpus: &Corpus, random: &mut Random) -> Text {
    let Program { headers, own } = corpus.any(random);
    let mut text = Text { headers: headers.clone(), words: own.clone() };
    let most = random.below(4);
    for _ in 0..=most.saturating_sub(random.below(4)) {
        if text.words.is_empty() {
            break;
        }
        let other = if random.below(2) == 0 { &corpus.any(random).own } else { own };
        damage(&mut text.words, other, random);
    }
    text
}

fn damage(words: &mut Vec<String>, other: &[String], random: &mut Random) {
    let at = random.below(words.len());
    let most = if random.below(4) == 0 { 40 } else { 4 };
    let end = (at + 1 + random.below(most)).min(words.len());
    match random.below(26) {
        24 if !other.is_empty() => splice(words, other, random),
        25 => words.insert(at, odd_word(random)),
        0 => drop(words.drain(at..end)),
        1 => {
            let copy = words[at..end].to_vec();
            let to = random.below(words.len());
            words.splice(to..to, copy);
        }
        2 => {
            let to = random.below(words.len());
            words.swap(at, to);
        }
        3 if !other.is_empty() => {
            let from = random.below(other.len());
            let to = (from + 1 + random.below(most)).min(other.len());
            words.splice(at..end, other[from..to].iter().cloned());
        }
        4 => words[at] = any_word(random),
        5 => words.insert(at, any_word(random)),
        6 => damage_bytes(&mut words[at], random),
        7..11 if !other.is_empty() => copy_statement(words, other, random),
        11 | 12 => drop_statement(words, random),
        _ => replace_by_its_like(&mut words[at], other, random),
    }
}

/// What kind of word it is: those of a kind may often stand where another of them stands.
fn kind(word: &str) -> char {
    match word.chars().next() {
        Some(c) if c.is_ascii_digit() => '0',
        Some(c) if c.is_alphabetic() || c == '_' => 'a',
        Some(c) if "+-/%&|^<>=!~".contains(c) => '+',
        Some(c) if "()[]{};,".contains(c) => ';',
        Some(c) => c,
        None => ' ',
    }
}

fn replace_by_its_like(word: &mut String, other: &[String], random: &mut Random) {
    if kind(word) == ';' {
        return;
    }
    let alike: Vec<&String> = other.iter().filter(|other| kind(other) == kind(word) && *other != word).collect();
    if !alike.is_empty() {
        *word = (*random.one_of(&alike)).clone();
    }
}

/// After the first end of a statement from `at` on.
fn after_end(words: &[String], at: usize) -> Option<usize> {
    let end = words[at..].iter().position(|word| word.starts_with([';', '{', '}']))?;
    Some(at + end + 1)
}

/// Puts what lies between two ends of statements after another end of one.
fn copy_statement(words: &mut Vec<String>, other: &[String], random: &mut Random) {
    let at = after_end(words, random.below(words.len()));
    let from = after_end(other, random.below(other.len()));
    if let (Some(at), Some(from)) = (at, from) {
        let to = after_end(other, from).unwrap_or(other.len());
        words.splice(at..at, other[from..to].iter().cloned());
    }
}

/// From the end of a statement on the text is another's.
fn splice(words: &mut Vec<String>, other: &[String], random: &mut Random) {
    let at = after_end(words, random.below(words.len()));
    let from = after_end(other, random.below(other.len()));
    if let (Some(at), Some(from)) = (at, from) {
        words.truncate(at);
        words.extend(other[from..].iter().cloned());
    }
}

/// What no sane text has: words and numbers without end, places that there are not.
fn odd_word(random: &mut Random) -> String {
    let long = 1 << random.below(16);
    match random.below(9) {
        0 => "x".repeat(long),
        1 => "9".repeat(long),
        2 => format!("0x{}", "f".repeat(long)),
        3 => format!("\"{}\"", "\\377".repeat(long)),
        4 => format!("\n# {} \"{}.h\"\n", 1u64 << random.below(64), random.below(9)),
        5 => format!("\n#line {} \"\\\"\n", random.below(1 << 33)),
        6 => "\r\n".to_owned(),
        7 => "\0".to_owned(),
        _ => "/* \r */ \u{feff} ".to_owned(),
    }
}

fn drop_statement(words: &mut Vec<String>, random: &mut Random) {
    if let Some(from) = after_end(words, random.below(words.len())) {
        let to = after_end(words, from).unwrap_or(words.len());
        words.drain(from..to);
    }
}

fn damage_bytes(word: &mut String, random: &mut Random) {
    let mut bytes = std::mem::take(word).into_bytes();
    let at = random.below(bytes.len());
    bytes[at] = random.below(256) as u8;
    *word = String::from_utf8_lossy(&bytes).into_owned();
}

fn any_word(random: &mut Random) -> String {
    format!("{} ", random.one_of(WORDS))
}

/// Up to sixty words without any sense.
pub fn random_words(_: &Corpus, random: &mut Random) -> Text {
    let words = (0..random.below(60)).map(|_| any_word(random)).collect();
    Text { headers: String::new(), words }
}

/// Leaves out what can be left out while `fails` holds: first the headers, then ever shorter runs of words.
pub fn shortest(mut text: Text, fails: impl Fn(&str) -> bool) -> Text {
    let without = Text { headers: String::new(), ..text.clone() };
    if fails(&without.whole()) {
        text = without;
    }
    let mut run = text.words.len() / 2;
    while run > 0 {
        let mut at = 0;
        while at < text.words.len() {
            let mut shorter = text.clone();
            shorter.words.drain(at..(at + run).min(shorter.words.len()));
            if fails(&shorter.whole()) {
                text = shorter;
            } else {
                at += run;
            }
        }
        run /= 2;
    }
    text
}

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "int", "char", "void", "unsigned", "long", "double", "const", "static", "struct", "union", "@tagged", "datatype", "@extensible", "enum",
    "switch", "case", "default", "let", "region", "try", "catch", "throw", "new", "rnew", "qnew", "namespace", "using", "extern", "extern \"C\"",
    "typedef", "t", "x", "y", "N::z", "`a", "`r", "`H", "`U", "`RC", "\\U", "\\T", "@fat", "@aqual(UNIQUE)", "@aqual(REFCNT)", "@aqual(`q)",
    "@zeroterm", "@nozeroterm", "@notnull", "@", "*", "?", "(", ")", "{", "}", "[", "]", "<", ">", ">>", "<>", ",", ";", ":", "::", ":=:", "=",
    "==", "+", "-", "/", "%", "<<", "&&", "&", "!", "~", "++", "->", ".", "$(", "...", "0", "1", "-1", "2.5", "2147483647",
    "18446744073709551615", "0x8000000000000000", "'c'", "\"s\"", "\"%d %s\"", "alias", "as", "_", "if", "else", "for", "while", "do", "goto",
    "break", "continue", "return", "sizeof", "offsetof", "malloc", "calloc", "rmalloc", "qmalloc", "asm", "regions", "NULL", "export", "numelts",
    "#", "/*", "*/", "//", "\n", "@numelts(", "@numelts(1)", "*{3}", "valueof", "valueof_t", "tag_t", "region_t", "aqual_t", "tagcheck", "__attribute__((",
    "__attribute__((consume(1)))", "__attribute__((noreturn))", "fallthru", "fallthru(1)", "::B", "::A", "::E", "::I", "::Q", "\u{e9}", "\\", "`",
    "\"", "'", "@assert", "@requires", "abstract", "inject", "__typeof__", "bool", "f", "g", "main", "printf", "L:",
];
