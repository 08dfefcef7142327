fn texts() -> [&'static str; 3] {
    // park_async(cx)
    ["park_async(cx)", "x = park_async(move _1) -> [return: bb1, unwind continue];", "}\nfn bad_async(_1: &mut Cx) -> () {\n"]
}
