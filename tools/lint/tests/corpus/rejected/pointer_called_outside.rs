use context::*;

fn run(job: fn(&mut Cx), cx: &mut Option<Cx>) {
    if let Some(cx) = cx {
        job(cx); //~ call_outside_async
    }
}
