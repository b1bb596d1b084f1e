//! Packs a type with the kernels of a bundle that `dtc build` or `BundleWriter` made, and prints which code did: a program that is
//! built without the feature `jit` has no others.
//!
//! `cargo run -p dtc-runtime --no-default-features --example bundled -- 'vector 1000 3 5 double' BUNDLE`

use dtc_runtime::datatype::Datatype;
use dtc_runtime::{Engine, Policy, Range};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let datatype: Datatype = arguments.next().ok_or("expected a datatype, found no argument")?.parse()?;
    let engine = Engine::builder().policy(Policy::Eager).build();
    if let Some(bundle) = arguments.next() {
        engine.load_bundle(Path::new(&bundle))?;
    }
    let committed = engine.commit(&datatype);

    let (low, high) = committed.span(1).ok_or("expected a datatype with bytes, found one without")?;
    if low < 0 {
        return Err(format!("expected a datatype from byte 0 on, found one from {low} on").into());
    }
    let memory: Vec<u8> = (0..high as usize).map(|at| (at * 31 + at / 251) as u8).collect();
    let mut packed = vec![0u8; committed.packed_size(1)?];
    committed.pack(&memory, Range::elements(1), &mut packed)?;
    let expected = datatype.runs().flat_map(|run| &memory[run.offset as usize..][..run.bytes as usize]);
    if !expected.eq(&packed) {
        return Err("expected the bytes of the type map, found others".into());
    }
    println!("{}: {} bytes", committed.tier(), packed.len());
    Ok(())
}
