//! The grammar for editors knows every keyword of the compiler.

use std::path::Path;

const WORDS: &[&str] = &[
    "abstract",
    "aqual_t",
    "aquals",
    "calloc",
    "catch",
    "cyclone_hide",
    "cyclone_override",
    "datatype",
    "export",
    "fallthru",
    "let",
    "malloc",
    "namespace",
    "new",
    "numelts",
    "offsetof",
    "qcalloc",
    "qmalloc",
    "qnew",
    "rcalloc",
    "region",
    "region_t",
    "regions",
    "rmalloc",
    "rmalloc_inline",
    "rnew",
    "rvmalloc",
    "tag_t",
    "tagcheck",
    "tagof",
    "throw",
    "try",
    "using",
    "valueof",
    "valueof_t",
    "ALIASABLE",
    "NULL",
    "REFCNT",
    "RESTRICTED",
    "UNIQUE",
];

const QUALIFIERS: &[&str] = &[
    "aqual",
    "assert",
    "autoreleased",
    "checks",
    "ensures",
    "extensible",
    "fat",
    "notnull",
    "nozeroterm",
    "nullable",
    "numelts",
    "region",
    "requires",
    "subset",
    "tagged",
    "thin",
    "throws",
    "zeroterm",
];

#[test]
fn the_grammar_is_json_and_knows_all_keywords() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editor/cyclone.tmLanguage.json");
    let grammar: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).expect("the grammar is there")).expect("it is JSON");
    let mut patterns = Vec::new();
    collect(&grammar, &mut patterns);
    let known = |word: &str| {
        patterns.iter().any(|pattern| pattern.split(['(', ')', '|']).any(|alternative| alternative == word))
    };
    let missing: Vec<_> = WORDS.iter().chain(QUALIFIERS).filter(|word| !known(word)).collect();
    assert!(missing.is_empty(), "not in the grammar: {missing:?}");
}

fn collect(value: &serde_json::Value, patterns: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), member) {
                    ("match" | "begin" | "end", serde_json::Value::String(pattern)) => patterns.push(pattern.clone()),
                    _ => collect(member, patterns),
                }
            }
        }
        serde_json::Value::Array(elements) => elements.iter().for_each(|element| collect(element, patterns)),
        _ => {}
    }
}
