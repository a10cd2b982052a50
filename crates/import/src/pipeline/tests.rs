use super::*;
use esker_vfs::Environment;

#[test]
fn answers_come_in_order() {
    let tasks = Environment::os().tasks;
    let mut pipeline = Pipeline::new(&tasks, "test", |n: u64| {
        // Some jobs take far longer than others.
        (0..(n % 7) * 20_000).fold(n, |a, b| std::hint::black_box(a ^ b ^ b))
    });
    let (mut next, mut answers) = (0, Vec::new());
    while answers.len() < 500 {
        while next < 500 && pipeline.in_flight() < pipeline.depth() {
            pipeline.push(next);
            next += 1;
        }
        answers.push(pipeline.next().unwrap());
    }
    assert_eq!(answers, (0..500).collect::<Vec<u64>>());
    assert_eq!(pipeline.next(), None);
}

#[test]
fn a_job_without_others_takes_no_thread() {
    let tasks = Environment::os().tasks;
    let caller = std::thread::current().id();
    let mut pipeline =
        Pipeline::new(&tasks, "test", move |(): ()| std::thread::current().id() == caller);
    for _ in 0..3 {
        pipeline.push(());
        assert_eq!(pipeline.next(), Some(true));
    }
    assert_eq!((pipeline.next(), pipeline.workers.len()), (None, 0));
    pipeline.push(());
    pipeline.push(());
    assert_eq!((pipeline.next(), pipeline.next()), (Some(false), Some(false)));
}

#[test]
fn a_pipeline_may_be_left_with_jobs_in_flight() {
    let tasks = Environment::os().tasks;
    let mut pipeline = Pipeline::new(&tasks, "test", |n: u64| n);
    (0..100).for_each(|n| pipeline.push(n));
    assert_eq!(pipeline.next(), Some(0));
}

#[test]
fn a_job_that_panics_ends_the_wait() {
    let tasks = Environment::os().tasks;
    let mut pipeline = Pipeline::new(&tasks, "test", |n: u64| {
        assert!(n != 1, "the test wants this panic");
        n
    });
    (0..3).for_each(|n| pipeline.push(n));
    assert_eq!(pipeline.next(), Some(0));
    assert_eq!(pipeline.next(), None);
}
