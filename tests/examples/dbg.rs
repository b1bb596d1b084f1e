use dtc_compiler::{canonicalise, lower};
use dtc_tests::generate::{algebra::Huge, sequence::Sequence, split};
use rand::SeedableRng;
use std::time::{Duration, Instant};
fn run(l: dtc_compiler::layout::Layout) -> Option<Duration> {
    let (tx, rx) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let t = Instant::now();
        let _ = canonicalise(&l);
        tx.send(t.elapsed())
    });
    rx.recv_timeout(Duration::from_secs(3)).ok()
}
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let mut bad = 0;
    let mut total = Duration::ZERO;
    for seed in a[1]..a[2] {
        let mut rng = rand::rngs::SmallRng::seed_from_u64(seed);
        let ds = if a[0] == 0 {
            let most = if seed % 50 == 0 { 4000 } else { 250 };
            let s = Sequence::draw(&mut rng, most);
            [(); 2].map(|()| split::datatype_of(&s, &mut rng))
        } else {
            let h = Huge::draw(&mut rng);
            {
                let _: [_; 2] = [(); 2].map(|()| h.datatype(&mut rng));
                let a = h.altered(&mut rng);
                println!("{seed} {a:?}");
                let d = a.datatype(&mut rng);
                println!("built");
                [d.clone(), d]
            }
        };
        for d in ds {
            let l = lower(&d);
            match run(l.clone()) {
                Some(t) if t < Duration::from_millis(300) => total += t,
                t => {
                    println!("seed {seed} slow {t:?} size {} text {}", l.size(), l.to_string().len());
                    if l.to_string().len() < 1500 {
                        println!("{l}")
                    };
                    bad += 1;
                    if bad > 8 {
                        return;
                    }
                }
            }
        }
    }
    println!("done {total:?}");
}
