//! What man pages have beside the help: EXIT STATUS, ENVIRONMENT, FILES and EXAMPLES of each command.

/// Variables of the environment, and what they are for. A page names those that its command reads.
pub const VARIABLES: [(&str, &str); 16] = [
    ("DTC_CPU", "Level of the processor to use in place of the one found, such as x86-64-v3 or zen4."),
    ("DTC_CACHE_DIR", "Directory of compiled GPU code that is read and written; off keeps none."),
    ("DTC_CACHE_SITE", "Directories of compiled GPU code that are only read, separated by colons."),
    ("DTC_BUNDLES", "Outputs of dtc build that are loaded in place of compiling, separated by colons."),
    ("DTC_RECORD", "Folder into which a process writes the types that it commits, for dtc build, bench and explain."),
    ("DTC_CUDA_DRIVER", "File of the CUDA driver, in place of libcuda.so.1."),
    ("DTC_NVRTC", "File of NVRTC, the compiler of CUDA, in place of the one that is searched for."),
    (
        "CUDA_HOME, CUDA_PATH, VIRTUAL_ENV, CONDA_PREFIX, HOME",
        "Where NVRTC is searched for: the toolkit, and packages of Python.",
    ),
    ("CC", "The C compiler of hand-written loops; otherwise gcc, or cc."),
    ("PEER_MPICH_CC, PEER_OPENMPI_CC", "The compilers of MPI programs that --peers builds its programs with."),
    ("DTC_MPI", "What libdtc_mpi does: on, off or all; see libdtc_mpi(7). Set by the command itself in some runs."),
    ("DTC_MPI_REPORT", "Has libdtc_mpi say what it did. Set by the command itself."),
    ("LD_PRELOAD", "Libraries that the program has preloaded; libdtc_mpi comes before them."),
    ("PATH", "Where tools are searched for."),
    ("TMPDIR", "Folder for temporary files; otherwise /tmp."),
    (
        "RUST_LOG",
        "Prints records of the compiler on standard error: dtc_compiler=trace shows every rewrite. Nothing without it.",
    ),
];

/// Variables that every command which commits a type reads.
const ENGINE: [&str; 4] = ["DTC_CPU", "DTC_BUNDLES", "DTC_RECORD", "RUST_LOG"];

/// Variables that commands read which may use a GPU.
const GPU: [&str; 5] = [
    "DTC_CACHE_DIR",
    "DTC_CACHE_SITE",
    "DTC_CUDA_DRIVER",
    "DTC_NVRTC",
    "CUDA_HOME, CUDA_PATH, VIRTUAL_ENV, CONDA_PREFIX, HOME",
];

/// Statuses that all commands end with.
pub const STATUSES: [(&str, &str); 4] = [
    ("0", "Success, also where the reader of a pipe has left."),
    ("2", "A bad description of a type, or bad arguments."),
    ("3", "Bad data: a file that is too short, bytes that differ, an output that cannot be written."),
    ("4", "A tool, a library or a GPU is missing. The message says how to get it."),
];

/// The sections of one command.
pub struct Sections {
    /// The command and those below it, as in `cache list`; empty for all.
    pub command: &'static str,
    /// Groups of names of [`VARIABLES`].
    pub variables: &'static [&'static [&'static str]],
    /// Files and what they are.
    pub files: &'static [(&'static str, &'static str)],
    /// Calls and what they do.
    pub examples: &'static [(&'static str, &'static str)],
}

const TYPES: (&str, &str) = (
    "TYPE.json",
    "A description of a type. Its schema is share/dtc/type-description.schema.json below the prefix of the installation; the short \
     notation, such as 'vector 12 1 14 double', is read from files that end in .dtc or .txt.",
);

const EXAMPLES: (&str, &str) =
    ("share/dtc/ir-examples", "Descriptions of types of real applications, below the prefix of the installation.");

const CACHE: (&str, &str) = ("/var/tmp/dtc-UID", "Compiled GPU code, unless DTC_CACHE_DIR names another directory.");

/// The sections of all commands; a test sees that none is forgotten.
pub const COMMANDS: [Sections; 19] = [
    Sections {
        command: "",
        variables: &[&ENGINE, &GPU, &["CC", "PATH", "TMPDIR"]],
        files: &[TYPES, EXAMPLES, CACHE, ("share/doc/dtc", "The book, below the prefix of the installation.")],
        examples: &[
            ("dtc demo", "Shows what dtc does on this machine."),
            ("dtc explain 'vector 12 1 14 double'", "Says what a type is, and how it is moved."),
        ],
    },
    Sections {
        command: "demo",
        variables: &[&ENGINE, &GPU, &["CC", "PATH", "TMPDIR"]],
        files: &[TYPES, EXAMPLES],
        examples: &[
            ("dtc demo", "Packs and unpacks a type of a real code, on a GPU if there is one."),
            ("dtc demo halo.json --backend cpu --verbose", "Shows layouts, plan and times of a type of one's own."),
        ],
    },
    Sections {
        command: "explain",
        variables: &[&ENGINE, &GPU],
        files: &[TYPES],
        examples: &[
            ("dtc explain halo.json", "Explains a type from its description to the kernels."),
            ("dtc explain 'indexed_block 2 [0, 5, 11] double' --json", "The same as JSON, for a type in the notation."),
        ],
    },
    Sections {
        command: "view",
        variables: &[&ENGINE, &GPU],
        files: &[TYPES],
        examples: &[
            ("dtc view halo.json -o halo.html", "Writes a page for a browser, which needs nothing else."),
            ("dtc view 'vector 12 1 14 double' --svg -o column.svg", "Writes a picture of memory and packed bytes."),
        ],
    },
    Sections {
        command: "lower",
        variables: &[&["RUST_LOG"]],
        files: &[TYPES],
        examples: &[("dtc lower halo.json", "Prints the layout before and after the passes.")],
    },
    Sections {
        command: "emit",
        variables: &[&ENGINE, &GPU],
        files: &[TYPES],
        examples: &[
            ("dtc emit halo.json --as c > halo.c", "Writes C11 that packs the type with nothing of dtc."),
            ("dtc emit halo.json --as cuda --target sm_90", "Prints the kernel for a GPU."),
        ],
    },
    Sections {
        command: "build",
        variables: &[&ENGINE, &GPU, &["TMPDIR"]],
        files: &[
            TYPES,
            ("kernels.dtc", "The bundle in the output, which DTC_BUNDLES names or dtc_load_bundle() loads."),
        ],
        examples: &[
            ("dtc build halo.json -o halo --target x86-64-v3,sm_90", "Compiles for a processor and a GPU."),
            ("dtc build recordings -o halo", "Compiles what programs recorded with DTC_RECORD."),
        ],
    },
    Sections {
        command: "pack",
        variables: &[&ENGINE, &GPU, &["TMPDIR"]],
        files: &[TYPES],
        examples: &[
            ("dtc pack column.json --in matrix.npy --out column.npy", "Packs a column of an array of NumPy."),
            ("dtc pack column.json --in - --out - < matrix > column", "The same for raw bytes in a pipe."),
        ],
    },
    Sections {
        command: "unpack",
        variables: &[&ENGINE, &GPU, &["TMPDIR"]],
        files: &[TYPES],
        examples: &[(
            "dtc unpack column.json --in column.npy --out matrix.npy",
            "Writes a column of an array of NumPy.",
        )],
    },
    Sections {
        command: "bench",
        variables: &[&ENGINE, &GPU, &["CC", "PEER_MPICH_CC, PEER_OPENMPI_CC", "PATH", "TMPDIR"]],
        files: &[TYPES, EXAMPLES],
        examples: &[
            ("dtc bench --only lammps", "Measures some of the examples."),
            ("dtc bench halo.json --peers /tmp/peers", "Measures a type beside the loop, MPICH and Open MPI."),
        ],
    },
    Sections {
        command: "compare",
        variables: &[&["DTC_MPI", "DTC_MPI_REPORT", "LD_PRELOAD", "PATH"], &ENGINE, &GPU],
        files: &[("libdtc_mpi.so", "The interposer, in the folder of the libraries beside the command.")],
        examples: &[("dtc compare -- mpirun -n 2 ./program", "Says whether a program is faster with libdtc_mpi.")],
    },
    Sections {
        command: "cache",
        variables: &[&["DTC_CACHE_DIR", "DTC_CACHE_SITE"]],
        files: &[CACHE],
        examples: &[("dtc cache verify", "Checks every entry.")],
    },
    Sections {
        command: "cache list",
        variables: &[&["DTC_CACHE_DIR", "DTC_CACHE_SITE"]],
        files: &[CACHE],
        examples: &[("dtc cache list", "Lists the compiled GPU code of this machine.")],
    },
    Sections {
        command: "cache verify",
        variables: &[&["DTC_CACHE_DIR", "DTC_CACHE_SITE"]],
        files: &[CACHE],
        examples: &[("DTC_CACHE_DIR=/scratch/me/dtc dtc cache verify", "Checks the entries of another directory.")],
    },
    Sections {
        command: "cache clear",
        variables: &[&["DTC_CACHE_DIR", "DTC_CACHE_SITE"]],
        files: &[CACHE],
        examples: &[("dtc cache clear", "Removes the compiled GPU code of this user.")],
    },
    Sections {
        command: "calibrate",
        variables: &[&GPU],
        files: &[CACHE],
        examples: &[
            ("dtc calibrate --gpu 0 --dry-run", "Measures a GPU, and stores nothing."),
            (
                "dtc calibrate -o table.txt --mpi mpirun -n 2",
                "Measures the MPI of mpirun, and writes the table that DTC_MPI_TABLE has libdtc_mpi read.",
            ),
        ],
    },
    Sections {
        command: "doctor",
        variables: &[&ENGINE, &GPU, &["DTC_MPI_REPORT", "LD_PRELOAD", "PATH"]],
        files: &[CACHE, ("libdtc_mpi.so", "The interposer, in the folder of the libraries beside the command.")],
        examples: &[
            ("dtc doctor", "Says what this machine offers."),
            ("dtc doctor --mpi mpirun -n 2 ./program", "Says which MPI a program has, and what is served there."),
        ],
    },
    Sections {
        command: "completions",
        variables: &[],
        files: &[("share/bash-completion/completions", "Where an installation has those of bash, below its prefix.")],
        examples: &[("source <(dtc completions bash)", "Completes arguments in this session of bash.")],
    },
    Sections {
        command: "man",
        variables: &[],
        files: &[("share/man/man1", "Where an installation has the pages, below its prefix.")],
        examples: &[("dtc man | man -l -", "Reads the page of the command, where it is not installed.")],
    },
];

/// The sections of a command, by its name behind that of the program.
pub fn of(command: &str) -> Option<&'static Sections> {
    COMMANDS.iter().find(|sections| sections.command == command)
}
