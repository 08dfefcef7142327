//! From preprocessed text to tokens.
//!
//! The whole text is cut at once into a vector of [`Token`]s, 16 bytes each, that ends with [`Tok::End`]. A token has a kind and
//! a span, and words have their symbol; what else it says (a number) is read from the span when it is needed. Line markers
//! go into the [`Source`].
//!
//! What is particular to Cyclone: type variables (`` `a ``), the short alias qualifiers (`\U`), the qualifiers (`@fat`), which are
//! one token only if the whole word is known (`@taggedfoo` is `@` and `taggedfoo`), `::` inside names (`List::map` is one token,
//! [`Tok::QualifiedName`]), `:=:`, `<>`, and comments that nest. Whether a name is a type's is the parser's business, and so is
//! the splitting of `>>` in type arguments. Inside `extern "C"` the parser reads Cyclone's own keywords as names
//! ([`Tok::is_cyclone_only`]).
//!
//! Bytes that begin no token are reported once each and left out, so that the parser always gets a vector that ends well.

use crate::diagnostics::{Code, Diagnostic};
use crate::source::{Source, Span};
use crate::symbol::{Symbol, Symbols};

macro_rules! tokens {
    (words { $($word:ident $text:literal $($alias:literal)*;)* } cyclone { $($cyc:ident $cyctext:literal $($cycalias:literal)*;)* }
     qualifiers { $($qual:ident $qualtext:literal $($qualalias:literal)*;)* } signs { $($sign:ident $signtext:literal;)* } others { $($other:ident $shown:literal;)* }) => {
        /// What a token is.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[repr(u8)]
        pub enum Tok {
            $(#[doc = concat!("`", $text, "`")] $word,)*
            $(#[doc = concat!("`", $cyctext, "`, a keyword of Cyclone only")] $cyc,)*
            $(#[doc = concat!("`@", $qualtext, "`")] $qual,)*
            $(#[doc = concat!("`", $signtext, "`")] $sign,)*
            $(#[doc = $shown] $other,)*
        }

        impl Tok {
            /// How it is shown in messages.
            pub fn text(self) -> &'static str {
                match self {
                    $(Tok::$word => concat!("`", $text, "`"),)*
                    $(Tok::$cyc => concat!("`", $cyctext, "`"),)*
                    $(Tok::$qual => concat!("`@", $qualtext, "`"),)*
                    $(Tok::$sign => concat!("`", $signtext, "`"),)*
                    $(Tok::$other => $shown,)*
                }
            }

            /// A keyword of Cyclone that is an ordinary name in C.
            pub fn is_cyclone_only(self) -> bool {
                matches!(self, $(Tok::$cyc)|*)
            }

            /// The keywords.
            pub fn words() -> impl Iterator<Item = &'static str> {
                Tok::KEYWORDS.iter().map(|(word, _)| *word).filter(|word| !word.starts_with('_'))
            }

            const KEYWORDS: &[(&str, Tok)] = &[
                $(($text, Tok::$word), $(($alias, Tok::$word),)*)*
                $(($cyctext, Tok::$cyc), $(($cycalias, Tok::$cyc),)*)*
                ("_", Tok::Underscore),
            ];

            fn qualifier(text: &str) -> Option<Tok> {
                Some(match text {
                    $($qualtext $(| $qualalias)* => Tok::$qual,)*
                    _ => return None,
                })
            }
        }
    };
}

tokens! {
    words {
        Attribute "__attribute__" "__attribute"; Asm "asm" "__asm__" "__asm"; Auto "auto"; Break "break"; VaList "__builtin_va_list";
        Case "case"; Char "char"; Complex "_Complex" "__complex__"; Const "const" "__const__" "__const"; Continue "continue";
        Default "default"; Do "do"; Double "double"; Else "else"; Enum "enum"; Extension "__extension__"; Extern "extern";
        Float "float"; For "for"; Goto "goto"; If "if"; Inline "inline" "__inline__" "__inline"; Int "int"; Long "long";
        OffsetOf "offsetof"; Register "register"; Restrict "restrict" "__restrict" "__restrict__"; Return "return"; Short "short";
        Signed "signed" "__signed__" "__signed"; SizeOf "sizeof"; Static "static"; Struct "struct"; Switch "switch"; Typedef "typedef";
        TypeOf "typeof" "__typeof__" "__typeof"; Union "union"; Unsigned "unsigned" "__unsigned__"; Void "void";
        Volatile "volatile" "__volatile__" "__volatile"; While "while";
    }
    cyclone {
        Aliasable "ALIASABLE"; AqualT "aqual_t"; Aquals "aquals"; Assert "assert"; Abstract "abstract"; Calloc "calloc"; Catch "catch"; Override "cyclone_override";
        Datatype "datatype"; Export "export"; Fallthru "fallthru"; Hide "cyclone_hide"; Let "let"; Malloc "malloc"; Namespace "namespace"; New "new"; Null "NULL";
        Numelts "numelts"; NoInference "__noinference__"; PortOn "__cyclone_port_on__"; PortOff "__cyclone_port_off__"; Pragma "__cyclone_pragma__";
        Qcalloc "qcalloc"; Qmalloc "qmalloc"; Qnew "qnew"; Rcalloc "rcalloc"; Refcnt "REFCNT"; RegionT "region_t"; Region "region"; Regions "regions";
        Restricted "RESTRICTED"; Rmalloc "rmalloc"; RmallocInline "rmalloc_inline"; Rvmalloc "rvmalloc"; Rnew "rnew"; TagCheck "tagcheck"; TagOf "tagof"; TagT "tag_t";
        TempestOn "__tempest_on__"; TempestOff "__tempest_off__"; Throw "throw"; Try "try"; Unique "UNIQUE"; Using "using"; ValueOf "valueof"; ValueOfT "valueof_t";
    }
    qualifiers {
        QTagged "tagged"; QThin "thin"; QThrows "throws"; QNotNull "notnull"; QNumelts "numelts"; QNullable "nullable"; QNoZeroTerm "nozeroterm"; QZeroTerm "zeroterm";
        QEffect "effect"; QEnsures "ensures"; QExtensible "extensible"; QChecks "checks"; QRequires "requires"; QRegion "region"; QFat "fat"; QAqual "aqual";
        QAssert "assert" "assert__"; QAssertFalse "assert_false"; QAutoreleased "autoreleased"; QSubset "subset";
    }
    signs {
        LParen "("; RParen ")"; LBrace "{"; RBrace "}"; LBracket "["; RBracket "]"; Semi ";"; Comma ","; Dot "."; Arrow "->"; Ellipsis "..."; Colon ":"; ColonColon "::";
        Swap ":=:"; Question "?"; At "@"; Dollar "$"; Assign "="; PlusAssign "+="; MinusAssign "-="; StarAssign "*="; SlashAssign "/="; PercentAssign "%="; OrAssign "|=";
        XorAssign "^="; AndAssign "&="; ShlAssign "<<="; ShrAssign ">>="; EqEq "=="; NotEq "!="; Le "<="; Ge ">="; Lt "<"; Gt ">"; Shl "<<"; Shr ">>"; LtGt "<>";
        AndAnd "&&"; OrOr "||"; And "&"; Or "|"; Xor "^"; Plus "+"; Minus "-"; Star "*"; Slash "/"; Percent "%"; Not "!"; Tilde "~"; PlusPlus "++"; MinusMinus "--"; Underscore "_";
    }
    others {
        Name "a name"; QualifiedName "a qualified name"; TypeVar "a type variable"; AqualShort "an alias qualifier"; Number "a number"; FloatNumber "a floating number";
        Character "a character"; WideCharacter "a wide character"; Str "a string"; WideStr "a wide string"; End "the end of the file";
    }
}

/// One token.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// Its kind.
    pub kind: Tok,
    /// Where it is.
    pub span: Span,
    /// What it is called: of names without `::`, keywords and type variables.
    pub symbol: Option<Symbol>,
}

/// Cuts the whole source into tokens; the last one is [`Tok::End`]. Collects the line markers into `source`.
pub fn lex(source: &mut Source, diagnostics: &mut Vec<Diagnostic>) -> Vec<Token> {
    let text = std::mem::take(&mut source.text);
    let mut symbols = Symbols::hold();
    let keywords = Keywords::new(&mut symbols);
    let tokens = Vec::with_capacity(text.len() / 3);
    let mut lexer = Lexer { bytes: text.as_bytes(), at: 0, tokens, symbols, keywords, diagnostics };
    lexer.run(&text, source);
    let end = Span { start: text.len() as u32, end: text.len() as u32 };
    let mut tokens = lexer.tokens;
    tokens.push(Token { kind: Tok::End, span: end, symbol: None });
    source.text = text;
    tokens
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
    symbols: Symbols,
    keywords: Keywords,
    diagnostics: &'a mut Vec<Diagnostic>,
}

/// The kinds of words, by their symbols' numbers.
struct Keywords(Vec<Tok>);

impl Keywords {
    fn new(symbols: &mut Symbols) -> Keywords {
        let mut kinds = Vec::new();
        for &(word, kind) in Tok::KEYWORDS {
            let index = symbols.symbol(word).index();
            if kinds.len() <= index {
                kinds.resize(index + 1, Tok::Name);
            }
            kinds[index] = kind;
        }
        Keywords(kinds)
    }

    fn kind(&self, word: Symbol) -> Tok {
        self.0.get(word.index()).copied().unwrap_or(Tok::Name)
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Of each byte, whether it can stand in a name.
const NAME_BYTES: [bool; 256] = {
    let mut bytes = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        bytes[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_';
        byte += 1;
    }
    bytes
};

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn error(&mut self, start: usize, end: usize, message: &str) {
        let end = end.min(self.bytes.len());
        self.diagnostics.push(Diagnostic::error(Code::Lexical, Span { start: start as u32, end: end as u32 }, message));
    }

    fn push(&mut self, kind: Tok, start: usize) {
        self.tokens.push(Token { kind, span: self.since(start), symbol: None });
    }

    fn push_word(&mut self, kind: Tok, start: usize, symbol: Symbol) {
        self.tokens.push(Token { kind, span: self.since(start), symbol: Some(symbol) });
    }

    fn since(&self, start: usize) -> Span {
        Span { start: start as u32, end: self.at as u32 }
    }

    fn run(&mut self, text: &str, source: &mut Source) {
        let mut line_begins = true;
        while self.at < self.bytes.len() {
            let byte = self.bytes[self.at];
            match byte {
                b'\n' => {
                    line_begins = true;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'#' if line_begins => self.directive(text, source),
                b'/' if self.peek(1) == b'/' => self.skip_line(),
                b'/' if self.peek(1) == b'*' => self.comment(),
                _ => {
                    line_begins = false;
                    self.token(text, byte);
                }
            }
        }
    }

    fn skip_line(&mut self) {
        while self.at < self.bytes.len() && self.bytes[self.at] != b'\n' {
            self.at += 1;
        }
    }

    /// `# 12 "file" flags` or `#line 12 "file"`; anything else after `#` (a pragma) is skipped.
    fn directive(&mut self, text: &str, source: &mut Source) {
        let start = self.at + 1;
        self.skip_line();
        let line = text[start..self.at].trim_start();
        let line = line.strip_prefix("line").unwrap_or(line).trim_start();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let Ok(number) = line[..digits].parse::<u32>() else { return };
        let next = (self.at + 1).min(self.bytes.len()) as u32;
        let name =
            line[digits..].trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"')).map(|(name, _)| name);
        match name {
            Some(name) => source.add_marker(next, name, number),
            None => {
                let last = source.markers[source.markers.len() - 1].file as usize;
                let file = source.files[last].clone();
                source.add_marker(next, &file, number);
            }
        }
    }

    fn comment(&mut self) {
        let start = self.at;
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            match (self.bytes[self.at], self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
        self.error(start, start + 2, "this comment does not end");
    }

    fn token(&mut self, text: &str, byte: u8) {
        let start = self.at;
        match byte {
            b'L' if self.peek(1) == b'"' => self.quoted(b'"', Tok::WideStr, 1),
            b'L' if self.peek(1) == b'\'' => self.quoted(b'\'', Tok::WideCharacter, 1),
            b'"' => self.quoted(b'"', Tok::Str, 0),
            b'\'' => self.quoted(b'\'', Tok::Character, 0),
            b'`' | b'\\' if is_name_start(self.peek(1)) => {
                self.at += 1;
                self.name();
                let symbol = self.symbols.symbol(&text[start..self.at]);
                self.push_word(if byte == b'`' { Tok::TypeVar } else { Tok::AqualShort }, start, symbol);
            }
            b'@' => {
                self.at += 1;
                let word = self.at;
                self.name();
                match Tok::qualifier(&text[word..self.at]) {
                    Some(kind) => self.push(kind, start),
                    None => {
                        self.at = word;
                        self.push(Tok::At, start);
                    }
                }
            }
            b'0'..=b'9' => self.number(start),
            b'.' if self.peek(1).is_ascii_digit() => self.number(start),
            _ if is_name_start(byte) => self.word(text, start),
            _ => self.sign(text, start),
        }
    }

    /// A name, with or without qualifier, or a keyword.
    fn word(&mut self, text: &str, start: usize) {
        self.name();
        let word = &text[start..self.at];
        // `_::B` is a wildcard and a kind, not a qualified name.
        let mut is_qualified = false;
        while self.peek(0) == b':' && self.peek(1) == b':' && is_name_start(self.peek(2)) && word != "_" {
            self.at += 2;
            self.name();
            is_qualified = true;
        }
        if is_qualified {
            return self.push(Tok::QualifiedName, start);
        }
        let symbol = self.symbols.symbol(word);
        self.push_word(self.keywords.kind(symbol), start, symbol);
    }

    fn name(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().position(|&byte| !NAME_BYTES[byte as usize]).unwrap_or(rest.len());
    }

    /// Takes every byte that can belong to a number, as C's "preprocessing number" does; its value is checked when it is read.
    fn number(&mut self, start: usize) {
        let hex = self.bytes[start] == b'0' && matches!(self.peek(1), b'x' | b'X');
        let mut float = false;
        loop {
            match self.peek(0) {
                b'e' | b'E' if !hex => {
                    float = true;
                    self.at += 1;
                    if matches!(self.peek(0), b'+' | b'-') {
                        self.at += 1;
                    }
                }
                b'p' | b'P' if hex => {
                    float = true;
                    self.at += 1;
                    if matches!(self.peek(0), b'+' | b'-') {
                        self.at += 1;
                    }
                }
                // `1...3` is a range, not a number with dots.
                b'.' if self.peek(1) == b'.' => break,
                b'.' => {
                    float = true;
                    self.at += 1;
                }
                byte if NAME_BYTES[byte as usize] => {
                    float |= !hex && matches!(byte, b'f' | b'F');
                    self.at += 1;
                }
                _ => break,
            }
        }
        self.push(if float { Tok::FloatNumber } else { Tok::Number }, start);
    }

    fn quoted(&mut self, quote: u8, kind: Tok, prefix: usize) {
        let start = self.at;
        self.at += prefix + 1;
        loop {
            match self.peek(0) {
                b'\\' if self.at + 1 < self.bytes.len() => self.at += 2,
                byte if byte == quote => {
                    self.at += 1;
                    break;
                }
                b'\n' => {
                    self.error(start, self.at, "this literal does not end on its line");
                    break;
                }
                _ if self.at >= self.bytes.len() => {
                    self.error(start, self.at, "this literal does not end");
                    self.at = self.bytes.len();
                    break;
                }
                _ => self.at += 1,
            }
        }
        self.push(kind, start);
    }

    fn sign(&mut self, text: &str, start: usize) {
        let (kind, len) = match (self.bytes[start], self.peek(1), self.peek(2)) {
            (b':', b'=', b':') => (Tok::Swap, 3),
            (b'.', b'.', b'.') => (Tok::Ellipsis, 3),
            (b'<', b'<', b'=') => (Tok::ShlAssign, 3),
            (b'>', b'>', b'=') => (Tok::ShrAssign, 3),
            (b'=', b'=', _) => (Tok::EqEq, 2),
            (b'!', b'=', _) => (Tok::NotEq, 2),
            (b'<', b'=', _) => (Tok::Le, 2),
            (b'>', b'=', _) => (Tok::Ge, 2),
            (b'+', b'+', _) => (Tok::PlusPlus, 2),
            (b'-', b'-', _) => (Tok::MinusMinus, 2),
            (b'+', b'=', _) => (Tok::PlusAssign, 2),
            (b'-', b'=', _) => (Tok::MinusAssign, 2),
            (b'*', b'=', _) => (Tok::StarAssign, 2),
            (b'/', b'=', _) => (Tok::SlashAssign, 2),
            (b'%', b'=', _) => (Tok::PercentAssign, 2),
            (b'|', b'=', _) => (Tok::OrAssign, 2),
            (b'^', b'=', _) => (Tok::XorAssign, 2),
            (b'&', b'=', _) => (Tok::AndAssign, 2),
            (b'&', b'&', _) => (Tok::AndAnd, 2),
            (b'|', b'|', _) => (Tok::OrOr, 2),
            (b'<', b'<', _) => (Tok::Shl, 2),
            (b'>', b'>', _) => (Tok::Shr, 2),
            (b'<', b'>', _) => (Tok::LtGt, 2),
            (b'-', b'>', _) => (Tok::Arrow, 2),
            (b':', b':', _) => (Tok::ColonColon, 2),
            (b'(', ..) => (Tok::LParen, 1),
            (b')', ..) => (Tok::RParen, 1),
            (b'{', ..) => (Tok::LBrace, 1),
            (b'}', ..) => (Tok::RBrace, 1),
            (b'[', ..) => (Tok::LBracket, 1),
            (b']', ..) => (Tok::RBracket, 1),
            (b';', ..) => (Tok::Semi, 1),
            (b',', ..) => (Tok::Comma, 1),
            (b'.', ..) => (Tok::Dot, 1),
            (b':', ..) => (Tok::Colon, 1),
            (b'?', ..) => (Tok::Question, 1),
            (b'$', ..) => (Tok::Dollar, 1),
            (b'=', ..) => (Tok::Assign, 1),
            (b'<', ..) => (Tok::Lt, 1),
            (b'>', ..) => (Tok::Gt, 1),
            (b'&', ..) => (Tok::And, 1),
            (b'|', ..) => (Tok::Or, 1),
            (b'^', ..) => (Tok::Xor, 1),
            (b'+', ..) => (Tok::Plus, 1),
            (b'-', ..) => (Tok::Minus, 1),
            (b'*', ..) => (Tok::Star, 1),
            (b'/', ..) => (Tok::Slash, 1),
            (b'%', ..) => (Tok::Percent, 1),
            (b'!', ..) => (Tok::Not, 1),
            (b'~', ..) => (Tok::Tilde, 1),
            _ => {
                let width = text[start..].chars().next().map_or(1, char::len_utf8);
                self.at += width;
                self.error(start, self.at, "this character begins nothing in Cyclone");
                return;
            }
        };
        self.at += len;
        self.push(kind, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Tok> {
        let mut diagnostics = Vec::new();
        let tokens = lex(&mut Source::new("t", text.to_owned()), &mut diagnostics);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        tokens.iter().map(|token| token.kind).collect()
    }

    #[test]
    fn a_qualifier_is_one_token_only_when_the_whole_word_is_known() {
        assert_eq!(kinds("@tagged"), [Tok::QTagged, Tok::End]);
        assert_eq!(kinds("@taggedfoo"), [Tok::At, Tok::Name, Tok::End]);
    }

    #[test]
    fn type_variables_and_short_qualifiers_keep_their_mark() {
        assert_eq!(kinds("`a\\U ::"), [Tok::TypeVar, Tok::AqualShort, Tok::ColonColon, Tok::End]);
    }

    #[test]
    fn qualified_names_are_one_token_and_wildcards_with_kinds_are_not() {
        assert_eq!(
            kinds("List::map _::B"),
            [Tok::QualifiedName, Tok::Underscore, Tok::ColonColon, Tok::Name, Tok::End]
        );
    }

    #[test]
    fn numbers_of_each_form_are_told_apart() {
        use Tok::{End, FloatNumber, Number};
        assert_eq!(
            kinds("0x1fULL 017 1. .5 1e-3 2f"),
            [Number, Number, FloatNumber, FloatNumber, FloatNumber, FloatNumber, End]
        );
    }

    #[test]
    fn comments_nest_and_markers_move_the_line() {
        let mut diagnostics = Vec::new();
        let mut source = Source::new("t", "/* a /* b */ c */\n# 41 \"x.h\"\nfoo".to_owned());
        let tokens = lex(&mut source, &mut diagnostics);
        assert_eq!(source.place(tokens[0].span.start).line, 41);
        assert_eq!(source.place(tokens[0].span.start).file, "x.h");
    }

    #[test]
    fn bytes_that_begin_nothing_are_reported_and_left_out() {
        let mut diagnostics = Vec::new();
        let tokens = lex(&mut Source::new("t", "a § b \u{1}".to_owned()), &mut diagnostics);
        assert_eq!(tokens.len(), 3);
        assert_eq!(diagnostics.len(), 2);
    }
}
