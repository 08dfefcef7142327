use context::*;

fn run(mut job: impl FnMut(&mut Cx), cx: &mut Option<Cx>) {
    if let Some(cx) = cx {
        job(cx); //~ call_outside_async
    }
}
