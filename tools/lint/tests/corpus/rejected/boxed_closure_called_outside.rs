use context::*;

fn run(jobs: Vec<Box<dyn FnOnce(&mut Cx)>>, cx: &mut Option<Cx>) {
    for job in jobs {
        if let Some(cx) = cx {
            job(cx); //~ call_outside_async
        }
    }
}
