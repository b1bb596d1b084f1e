//! Compiles the decoder once for each ABI, against declarations of its own: no MPI is needed here.

/// The ABIs, which are folders of `abi`.
const ABIS: [&str; 3] = ["mpich", "open_mpi", "standard"];

fn main() {
    for abi in ABIS {
        let mut build = cc::Build::new();
        build.file("c/decode.c").std("gnu11").flag("-fvisibility=hidden").define("_GNU_SOURCE", None);
        build.include(format!("abi/{abi}")).include("abi").include("../c/include");
        // Static functions of the header that the interposer does not call.
        build.warnings(true).extra_warnings(true).flag_if_supported("-Wno-unused-function");
        build.compile(&format!("dtc_mpi_{abi}"));
    }
    for folder in ["c", "abi", "../c/include"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
