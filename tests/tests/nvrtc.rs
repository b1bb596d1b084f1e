//! NVRTC compiles the kernels of the shim's own tests, so the texts that the shim accepts are CUDA C++.

use dtc_tests::nvrtc::{ARCHITECTURES, compile_all};
use dtc_tests::skip::skip;

fn texts() -> Vec<(String, String)> {
    [
        ("rows", concat!("#define ROW 48\n#define STRIDE -80\n", include_str!("../emulator/shim/kernels/rows.cu"))),
        (
            "columns",
            concat!("#define HEIGHT 40\n#define WIDTH 70\n", include_str!("../emulator/shim/kernels/columns.cu")),
        ),
        ("runs", include_str!("../emulator/shim/kernels/runs.cu")),
        ("words", include_str!("../emulator/shim/kernels/words.cu")),
    ]
    .map(|(name, text)| (name.to_owned(), text.to_owned()))
    .into()
}

#[test]
fn the_kernels_of_the_shim_compile() {
    match compile_all(&texts()) {
        Ok(refusals) => {
            for refusal in &refusals {
                println!("{refusal}");
            }
            assert!(refusals.is_empty(), "{} refused", refusals.len());
        }
        Err(missing) => skip("the_kernels_of_the_shim_compile", &missing.to_string()),
    }
}

#[test]
fn refused_texts_are_shown_with_numbered_lines() {
    let texts = [("wrong".to_owned(), "extern \"C\" __global__ void wrong() {\n  nonsense;\n}".to_owned())];
    match compile_all(&texts) {
        Ok(refusals) => {
            assert_eq!(refusals.iter().map(|refusal| refusal.architecture).collect::<Vec<_>>(), ARCHITECTURES);
            for refusal in refusals {
                assert!(refusal.log.contains("wrong(2)") && refusal.log.contains("    2    nonsense;"), "{refusal}");
            }
        }
        Err(missing) => skip("refused_texts_are_shown_with_numbered_lines", &missing.to_string()),
    }
}
