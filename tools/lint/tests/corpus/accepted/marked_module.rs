mod jobs {
    #![cfg_attr(false, ebb_lint::table, ebb_lint::root)]
    use context::*;

    pub static JOB: fn(&mut Cx) = park_async;

    pub fn run(mut cx: Cx) {
        JOB(&mut cx);
        park_async(&mut cx);
    }
}
