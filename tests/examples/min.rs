use dtc_compiler::layout::Layout;
use std::time::Instant;
fn main() {
    for n in [1000u64, 100_000, 10_000_000, 1 << 30] {
        let l = Layout::parse(&format!("layout lb 0 extent 9 {{\n %0 = dense 4 x byte\n %1 = stream 2 x 1 of %0\n %2 = stream {n} x 2 of %1\n %3 = stream 3 x 100 of %0\n %4=record [0: %2, 7: %3]\n root %4\n}}")).unwrap();
        let t = Instant::now();
        println!("{n} {:?}", l.measure(l.root().node).runs);
        let c = dtc_compiler::canonicalise(&l);
        println!("{n}: {:?} {}", t.elapsed(), c.report);
    }
}
