//! The interposer as it is installed, under every MPI of the machine.

use super::launcher::{Launcher, handled, interposer, sources};
use super::{root, succeed, symbols, text};
use dtc_compiler::datatype::Datatype;
use dtc_runtime::store::{RecordedUses, Recording};
use dtc_tests::generate::random::{self, Limits};
use dtc_tests::mpi::{Mpi, bounds, program};
use dtc_tests::skip::{is_full, skip};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::HashSet;
use std::process::{Command, Output};
use tempfile::TempDir;

/// The names in the tables of calls and of subroutines: the first words of their lines. A subroutine may have two lines, or an `export!` of its
/// own.
fn calls() -> Vec<String> {
    let names = |file: &str, prefix: &str| -> Vec<String> {
        let table = std::fs::read_to_string(root().join("interfaces/mpi/src").join(file)).expect("the table");
        let first = table.lines().filter_map(|line| line.trim_start().trim_start_matches("export!(").split_once(' '));
        let of_table =
            first.filter(|(name, rest)| name.starts_with(prefix) && (rest.ends_with(';') || rest.starts_with('(')));
        of_table.map(|(name, _)| name.to_owned()).collect()
    };
    [names("calls.rs", "MPI_"), names("fortran.rs", "mpi_")].concat()
}

#[test]
fn the_interposer_exports_the_calls_of_its_tables_alone() {
    let (mut found, mut expected) = (symbols(&["-D", "--defined-only"], "libdtc_mpi.so"), calls());
    found.sort();
    expected.sort();
    assert!(expected.len() > 20, "{expected:?}");
    assert_eq!(found, expected);
    let output = succeed(Command::new("readelf").arg("-d").arg(interposer()));
    let dynamic = text(&output);
    assert!(dynamic.contains("[libdtc_mpi.so.0]") && dynamic.contains("NODELETE"), "{dynamic}");
    assert!(!dynamic.contains("TEXTREL") && !dynamic.contains("RUNPATH") && !dynamic.contains("[libmpi"), "{dynamic}");
}

/// Subroutines of Fortran are called by one program, which names them without the suffix of their binding.
#[test]
fn a_test_program_has_every_call() {
    let files = std::fs::read_dir(sources()).expect("a folder").map(|entry| entry.expect("a file").path());
    let programs: Vec<String> =
        files.map(|path| std::fs::read_to_string(path).expect("a program").to_ascii_lowercase()).collect();
    let mut words = HashSet::new();
    for program in &programs {
        words.extend(program.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_'));
    }
    let missing: Vec<String> = calls()
        .into_iter()
        .filter(|call| {
            let name = call.trim_end_matches('_').trim_end_matches("_f08").to_ascii_lowercase();
            !words.contains(name.as_str())
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A program without an MPI is none of its business.
#[test]
fn programs_without_an_mpi_run_as_before() {
    let mut program = Command::new("sh");
    let output = succeed(program.args(["-c", "echo here"]).env("LD_PRELOAD", interposer()));
    assert_eq!((text(&output).as_str(), output.stderr.len()), ("here\n", 0));
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn constants_are_those_of_each_mpi() {
    for launcher in Launcher::all("constants_are_those_of_each_mpi") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("constants.c", folder.path(), &[]);
        let said = text(&launcher.pass(1, &program, &[]));
        assert!(said.contains("constants: "), "{said}");
    }
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn messages_are_the_same_at_both_sides() {
    for launcher in Launcher::all("messages_are_the_same_at_both_sides") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("messages.c", folder.path(), &[]);
        let mut report = String::new();
        for ranks in 2..=4 {
            let output = launcher.pass(ranks, &program, &[("DTC_MPI_REPORT", "1")]);
            assert!(text(&output).contains("messages: done"), "{}", text(&output));
            let (sent, received) = (handled(&output, ": sent:"), handled(&output, ": received:"));
            assert!(sent > 100 && received > 100, "{}: {sent} {received}", launcher.compiler.display());
            report = String::from_utf8_lossy(&output.stderr).into_owned() + &text(&output);
        }
        let served = "served: blocking calls, nonblocking";
        for part in [
            "MPI: ",
            "threads: MPI_THREAD_",
            served,
            "call MPI_Recv: ",
            " few uses",
            "rank 1, datatype ",
            " MPI_Recv with dtc",
        ] {
            assert!(report.contains(part), "{}: {part} in {report}", launcher.compiler.display());
        }
        // Without the limits of what dtc does faster.
        let all = launcher.pass(2, &program, &[("DTC_MPI", "all"), ("DTC_MPI_REPORT", "1")]);
        assert!(text(&all).contains("messages: done"), "{}", text(&all));
        assert!(handled(&all, ": sent:") > 100, "{}", launcher.compiler.display());
        let output = launcher.pass(2, &program, &[("DTC_MPI", "off"), ("DTC_MPI_REPORT", "1")]);
        assert!(text(&output).contains("messages: done"), "{}", text(&output));
        assert_eq!(handled(&output, "calls with dtc"), 0);
        // Nothing is said unless it is asked for.
        let output = launcher.pass(2, &program, &[]);
        assert!(!(text(&output) + &String::from_utf8_lossy(&output.stderr)).contains("libdtc_mpi"));
    }
}

/// A table of which no call has a gain leaves all of them to the MPI; one that is wrong is told of, and changes nothing.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn the_table_of_the_environment_decides() {
    for launcher in Launcher::some("the_table_of_the_environment_decides") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("messages.c", folder.path(), &[]);
        let run = |text_of_table: &str| {
            let table = folder.path().join("table.txt");
            std::fs::write(&table, text_of_table).expect("a file");
            let path = table.display().to_string();
            let output = launcher.pass(2, &program, &[("DTC_MPI_TABLE", &path), ("DTC_MPI_REPORT", "1")]);
            assert!(text(&output).contains("messages: done"), "{}", text(&output));
            let said = String::from_utf8_lossy(&output.stderr).into_owned() + &text(&output);
            (handled(&output, ": sent:") + handled(&output, ": received:"), said)
        };
        let (calls, said) = run("mpi: any\n");
        assert_eq!(calls, 0, "{}", launcher.compiler.display());
        assert!(said.contains("rank 1, datatype ") && said.contains("MPI_Recv passed on ("), "{said}");
        let row = ["4", "8", "16"].map(|piece| format!("message regular 1/2 {piece} 9 9 9 9 9 9 9 9 9\n"));
        let (calls, said) = run(&format!("mpi: any\n{}", row.concat()));
        assert!(calls > 10, "{}: {calls}", launcher.compiler.display());
        assert!(said.contains("MPI_Recv with dtc"), "{said}");
        let (calls, said) = run("mpi: any\nmessage regular 1/3");
        let told = "table.txt: line 2: expected 1/2, 1/8, found \"1/3\": the table of the library serves\n";
        assert_eq!(said.matches(told).count(), 1, "{said}");
        assert!(calls > 0, "{}", launcher.compiler.display());
    }
}

/// Neither the first use, nor a list of more than vectors, keeps a datatype from being decoded.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn datatypes_of_unknown_pieces_are_decoded_when_their_uses_pay() {
    for launcher in Launcher::some("datatypes_of_unknown_pieces_are_decoded_when_their_uses_pay") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("uses.c", folder.path(), &[]);
        let table = folder.path().join("table.txt");
        std::fs::write(&table, "mpi: any\npack regular 1/2 8 9 9 9 9 9 9 - - -\npack listed 1/2 8 9 9 9 9 9 9 - - -\n")
            .expect("a file");
        let path = table.display().to_string();
        let output = launcher.pass(1, &program, &[("DTC_MPI_TABLE", &path), ("DTC_MPI_REPORT", "1")]);
        assert!(text(&output).contains("uses: done"), "{}", text(&output));
        let packs = handled(&output, ": MPI_Pack:");
        assert!((1_900..=2_000).contains(&packs), "{}: {packs}", launcher.compiler.display());
        // Not the subarray, whose pieces are too long for this table.
        let said = text(&output) + &String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(": 2 datatypes decoded"), "{}: {said}", launcher.compiler.display());
    }
}

/// Decoding such a vector is estimated to cost 4,410 ns. By this table, 100 uses of 512 bytes save 512 ns, and of 8 KiB 8 us.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn persistent_requests_count_as_many_uses() {
    for launcher in Launcher::some("persistent_requests_count_as_many_uses") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("persistent_uses.c", folder.path(), &[]);
        let table = folder.path().join("table.txt");
        std::fs::write(&table, "mpi: any\nexchange regular 1/2 8 1.1 1.1 1.1 1.1 - - - - -\n").expect("a file");
        let path = table.display().to_string();
        let output = launcher.pass(1, &program, &[("DTC_MPI_TABLE", &path), ("DTC_MPI_REPORT", "1")]);
        assert!(text(&output).contains("persistent_uses: done"), "{}", text(&output));
        // Two messages of the request for many bytes, and of those from the ninth for few on: four and a half pairs save 4,608 ns.
        let messages = [": sent:", ": received:"].map(|direction| handled(&output, direction));
        assert_eq!(messages, [2 + 2 * 6, 2 + 2 * 6], "{}", launcher.compiler.display());
        let said = text(&output) + &String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(": 2 datatypes decoded"), "{}: {said}", launcher.compiler.display());
    }
}

/// Once for a job, by the process of rank 0.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn unknown_values_of_variables_are_told_and_case_does_not_matter() {
    for launcher in Launcher::some("unknown_values_of_variables_are_told_and_case_does_not_matter") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("freed.c", folder.path(), &["-pthread"]);
        let run = |variables: &[(&str, &str)]| {
            let all = [&[("THREADS", "1"), ("ROUNDS", "20")], variables].concat();
            let output = launcher.pass(2, &program, &all);
            assert!(text(&output).contains("freed: done"), "{}", text(&output));
            (handled(&output, "calls with dtc"), text(&output) + &String::from_utf8_lossy(&output.stderr))
        };
        let told = |said: &str, line: &str| said.matches(&format!("libdtc_mpi: {line}")).count();
        for unknown in ["0", "of"] {
            let line = format!("DTC_MPI: expected off, on or all, found \"{unknown}\": dtc stays on\n");
            let (calls, said) = run(&[("DTC_MPI", unknown), ("DTC_MPI_REPORT", "ON")]);
            assert!(calls > 20 && told(&said, &line) == 1, "{}: {calls} {said}", launcher.compiler.display());
        }
        let (calls, said) = run(&[("DTC_MPI", "OFF"), ("DTC_MPI_REPORT", "1")]);
        assert_eq!((calls, told(&said, "off: every call goes to the MPI")), (0, 2), "{said}");
        assert!(said.contains(": call MPI_Pack: 0 with dtc in 0.000000 s, 80 passed on in "), "{said}");
        let (_, said) = run(&[("DTC_MPI_GPU", "hosts"), ("DTC_MPI_DIRECT", "elements"), ("DTC_MPI_REPORT", "")]);
        let unknown = "DTC_MPI_GPU: expected host or device, found \"hosts\"";
        let asked = "DTC_MPI_DIRECT: expected on or off, found \"elements\": it stays on";
        assert_eq!((told(&said, unknown), told(&said, asked), told(&said, "")), (1, 1, 2), "{said}");
        let (_, said) =
            run(&[("DTC_MPI", "All"), ("DTC_MPI_GPU", "HOST"), ("DTC_MPI_DIRECT", "off"), ("DTC_MPI_REPORT", "0")]);
        assert_eq!(told(&said, ""), 0, "{said}");
    }
}

/// All ranks record into one folder, at once.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn datatypes_and_their_calls_are_recorded() {
    for launcher in Launcher::some("datatypes_and_their_calls_are_recorded") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("messages.c", folder.path(), &[]);
        let records = folder.path().join("records");
        let variables = [("DTC_MPI_REPORT", "1"), ("DTC_RECORD", records.to_str().expect("a name"))];
        let output = launcher.pass(3, &program, &variables);
        let compiler = launcher.compiler.display();
        let (mut recording, mut files) = (Recording::default(), 0);
        for file in std::fs::read_dir(&records).expect("a folder") {
            recording.add_file(&file.expect("a file").path()).expect("a recording");
            files += 1;
        }
        assert_eq!((files, recording.left_out), (3, 0), "{compiler}");
        let total = |of: fn(&RecordedUses) -> u64| recording.types.values().map(|each| of(&each.uses)).sum::<u64>();
        let (packs, unpacks) = (total(|uses| uses.packs), total(|uses| uses.unpacks));
        // The self-test packs too.
        let sent = handled(&output, ": sent:") + handled(&output, ": MPI_Pack:");
        let received = handled(&output, ": received:") + handled(&output, ": MPI_Unpack:");
        assert!(sent > 100 && packs >= sent && unpacks >= received, "{compiler}: {packs} {sent} {unpacks} {received}");
    }
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn nonblocking_messages_end_with_every_call() {
    for launcher in Launcher::some("nonblocking_messages_end_with_every_call") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("nonblocking.c", folder.path(), &["-Wno-stringop-overflow"]);
        for ranks in 2..=3 {
            let output = launcher.pass(ranks, &program, &[("DTC_MPI_REPORT", "1")]);
            assert!(text(&output).contains("nonblocking: done"), "{}", text(&output));
            let (sent, received) = (handled(&output, ": sent:"), handled(&output, ": received:"));
            assert!(sent > 2_000 && received > 2_000, "{}: {sent} {received}", launcher.compiler.display());
        }
    }
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn collectives_with_datatypes_for_each_pair_exchange_the_same() {
    for launcher in Launcher::some("collectives_with_datatypes_for_each_pair_exchange_the_same") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("exchanges.c", folder.path(), &[]);
        // Once as programs run it: most of these datatypes are used too little to be decoded.
        let output = launcher.pass(3, &program, &[]);
        assert!(text(&output).contains("exchanges: done"), "{}", text(&output));
        for ranks in 2..=4 {
            let output = launcher.pass(ranks, &program, &[("DTC_MPI", "all"), ("DTC_MPI_REPORT", "1")]);
            assert!(text(&output).contains("exchanges: done"), "{}", text(&output));
            let (sent, received) = (handled(&output, ": sent:"), handled(&output, ": received:"));
            assert!(sent > 50 && received > 30, "{}: {sent} {received}", launcher.compiler.display());
        }
        let program = launcher.compile("persistent_exchanges.c", folder.path(), &["-ldl"]);
        for ranks in 2..=3 {
            let output = launcher.pass(ranks, &program, &[("DTC_MPI_REPORT", "1")]);
            assert!(text(&output).contains("persistent_exchanges: done"), "{}", text(&output));
            let (sent, received) = (handled(&output, ": sent:"), handled(&output, ": received:"));
            assert!(sent > 200 && received > 200, "{}: {sent} {received}", launcher.compiler.display());
        }
    }
}

#[test]
#[ignore = "packs and sends 1,000 datatypes with each MPI: ./test mpi"]
fn random_datatypes_are_packed_and_sent() {
    let drawn = (70_000..).map(|seed| random::datatype(&mut SmallRng::seed_from_u64(seed), &Limits::SMALL));
    let types: Vec<Datatype> = drawn.filter(bounds::can_be_asked).take(1_000).collect();
    for launcher in Launcher::some("random_datatypes_are_packed_and_sent") {
        let folder = TempDir::new().expect("a folder");
        let main = std::fs::read_to_string(sources().join("random.c")).expect("the program");
        let flags = [format!("-I{}", sources().display())];
        let program = program::build(&launcher.compiler, launcher.model, &types, folder.path(), &main, &flags)
            .unwrap_or_else(|error| panic!("{error}"));
        for (ranks, all) in [(1, "all"), (2, "all"), (2, "on")] {
            let output = launcher.pass(ranks, &program, &[("DTC_MPI", all), ("DTC_MPI_REPORT", "1")]);
            let said = text(&output);
            let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("libdtc_mpi")).collect();
            let wrong: Vec<String> = lines
                .iter()
                .zip(&types)
                .filter(|(line, _)| **line != "same")
                .map(|(line, datatype)| format!("{line}\n{datatype}"))
                .collect();
            let compiler = launcher.compiler.display();
            assert_eq!(lines.len(), types.len(), "{compiler}");
            let first = wrong[..wrong.len().min(5)].join("\n");
            assert!(wrong.is_empty(), "{compiler}: {} of {}:\n{first}", wrong.len(), types.len());
            for word in [": MPI_Pack:", ": MPI_Unpack:"] {
                let handled = handled(&output, word);
                assert!(handled > 100 || all == "on", "{compiler}: {word} {handled}");
            }
        }
    }
}

#[test]
#[ignore = "measures calls of each MPI: ./test mpi"]
fn calls_that_the_mpi_does_cost_100_ns_more_at_most() {
    for launcher in Launcher::some("calls_that_the_mpi_does_cost_100_ns_more_at_most") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("cost.c", folder.path(), &["-ldl"]);
        let said = text(&launcher.pass(1, &program, &[]));
        let costs: Vec<f64> =
            said.lines().filter_map(|line| line.rsplit(": ").next()?.split(' ').next()?.parse().ok()).collect();
        assert!(costs.len() == 6 && costs.iter().all(|cost| *cost <= 100.0), "{}: {said}", launcher.compiler.display());
    }
}

/// What a process has beside the MPI's: nothing as long as datatypes are used little, and nothing after MPI_Finalize.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn a_process_without_use_for_the_library_has_no_thread_of_it() {
    for launcher in Launcher::some("a_process_without_use_for_the_library_has_no_thread_of_it") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("idle.c", folder.path(), &[]);
        let count = |variables: &[(&str, &str)]| -> Vec<u32> {
            let said = text(&launcher.pass(1, &program, variables));
            let numbers = said.lines().find_map(|line| line.strip_prefix("idle: ")).expect(&said);
            numbers.split(' ').map(|number| number.parse().expect("a number")).collect()
        };
        let (alone, with) = (count(&[("DTC_MPI", "off")]), count(&[]));
        assert_eq!(with, alone, "{}", launcher.compiler.display());
        let used = count(&[("USED", "1")]);
        assert!(used[2] > alone[2] && used[3] == alone[3], "{}: {used:?} {alone:?}", launcher.compiler.display());
    }
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn a_program_that_traps_floating_point_exceptions_meets_none() {
    for launcher in Launcher::all("a_program_that_traps_floating_point_exceptions_meets_none") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("traps.c", folder.path(), &["-lm"]);
        let output = launcher.pass(1, &program, &[("DTC_MPI_REPORT", "1"), ("DTC_MPI_TABLE", "")]);
        assert!(text(&output).contains("traps: done") && handled(&output, ": MPI_Pack:") > 0, "{}", text(&output));
    }
}

#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn threads_send_and_receive_at_once() {
    for launcher in Launcher::some("threads_send_and_receive_at_once") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("threads.c", folder.path(), &["-pthread"]);
        let output = launcher.pass(2, &program, &[("DTC_MPI_REPORT", "1")]);
        assert!(text(&output).contains("threads: done"), "{}", text(&output));
        let (sent, received) = (handled(&output, ": sent:"), handled(&output, ": received:"));
        assert!(sent > 500 && received > 500, "{}: {sent} {received}", launcher.compiler.display());
    }
}

/// The MPI destroys these datatypes in whichever thread makes progress, and the plan of one that several threads own is used by some while
/// others give it up.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn datatypes_are_freed_while_their_messages_are_under_way() {
    for launcher in Launcher::some("datatypes_are_freed_while_their_messages_are_under_way") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("freed.c", folder.path(), &["-pthread"]);
        for (threads, all) in [("2", "all"), ("4", "all"), ("8", "all"), ("4", "on")] {
            let variables = [("DTC_MPI", all), ("DTC_MPI_REPORT", "1"), ("THREADS", threads), ("ROUNDS", "200")];
            let output = launcher.pass(2, &program, &variables);
            assert!(text(&output).contains("freed: done"), "{}", text(&output));
            let (packed, received) = (handled(&output, ": MPI_Pack:"), handled(&output, ": received:"));
            assert!(
                packed > 300 && (received > 100 || all == "on"),
                "{}: {packed} {received}",
                launcher.compiler.display()
            );
        }
    }
}

/// A profiler, by the protocol of NVTX.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn profilers_see_a_range_for_each_pack_and_unpack() {
    let folder = TempDir::new().expect("a folder");
    let profiler = folder.path().join("ranges.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-shared", "-fPIC", "-o"]).arg(&profiler);
    succeed(compiler.arg(sources().join("ranges.c")));
    for launcher in Launcher::some("profilers_see_a_range_for_each_pack_and_unpack") {
        let program = launcher.compile("threads.c", folder.path(), &["-pthread"]);
        let path = profiler.to_str().expect("a name");
        let output = launcher.pass(2, &program, &[("NVTX_INJECTION64_PATH", path)]);
        let said = text(&output);
        let lines: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("ranges: ")).collect();
        let number = |part: &str| -> u64 { part.trim().split(' ').next().expect("a word").parse().expect("a number") };
        // Launchers of the MPI may load the profiler too; they have no ranges.
        let told: Vec<Vec<&str>> = lines.iter().map(|line| line.splitn(4, ',').collect()).collect();
        let ranks: Vec<&Vec<&str>> = told.iter().filter(|parts| number(parts[0]) > 0).collect();
        assert_eq!(ranks.len(), 2, "{}: {said}", launcher.compiler.display());
        for parts in ranks {
            let (begun, ended, deep) = (number(parts[0]), number(parts[1]), number(parts[2]));
            assert!(begun > 1_000 && begun == ended && deep == 1, "{said}");
            assert!(parts[3].ends_with("elements in host memory, packed in host memory"), "{said}");
        }
    }
}

/// Every call of the tables, 600 times.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn the_heap_does_not_grow() {
    for launcher in Launcher::some("the_heap_does_not_grow") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("leaks.c", folder.path(), &["-Wno-stringop-overflow"]);
        let grown = |output: &Output| -> i64 {
            let said = text(output);
            let line = said.lines().find_map(|line| line.strip_prefix("leaks: "));
            line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{said}"))
        };
        let compiler = launcher.compiler.display();
        let with = || launcher.pass(1, &program, &[("DTC_MPI_REPORT", "1")]);
        let without = || grown(&launcher.pass(1, &program, &[("DTC_MPI", "off")]));
        assert!(handled(&with(), ": sent:") > 10_000, "{compiler}");
        // MPICH 4.0 alone grows by 832 bytes a round or by none, by where its memory lies: each in about half of the processes.
        let alone = (0..4).map(|_| without()).min().expect("four runs").max(0);
        // Tenths of a byte for each round: less than the smallest block of the heap.
        let found: Vec<i64> = (0..12).map(|_| grown(&with())).take_while(|&grown| grown > alone + 80).collect();
        assert!(found.len() < 12, "{compiler}: {found:?}, without the library {alone}");
    }
}

/// An MPI that loses memory leaves it between blocks of the library, in some starts only. It took 1 KB of each datatype with it.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn memory_of_datatypes_is_used_again() {
    for launcher in Launcher::some("memory_of_datatypes_is_used_again") {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("commits.c", folder.path(), &[]);
        for _ in 0..6 {
            let said = text(&launcher.pass(1, &program, &[]));
            let line = said.lines().find_map(|line| line.strip_prefix("commits: "));
            let free: u64 = line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{said}"));
            assert!(free < 8 << 20, "{}: {free} bytes", launcher.compiler.display());
        }
    }
}

/// Ten gigabytes of memory, so with all tests alone.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn more_than_two_gibibytes_are_moved() {
    let test = "more_than_two_gibibytes_are_moved";
    if !is_full() {
        skip(test, "needs ./test mpi full");
        return;
    }
    for launcher in Launcher::all(test) {
        let folder = TempDir::new().expect("a folder");
        let program = launcher.compile("large.c", folder.path(), &["-ldl"]);
        let said = text(&launcher.pass(1, &program, &[("DTC_MPI_REPORT", "1")]));
        assert!(said.contains("large: done"), "{said}");
    }
}

/// MPICH's tests and those of mpi4py: all of them under all MPIs with `./test mpi full`.
#[test]
#[ignore = "runs tests of others: ./test mpi"]
fn tests_of_others_pass_with_every_call_handled() {
    let test = "tests_of_others_pass_with_every_call_handled";
    let sources = Command::new(root().join("tests/mpich/fetch")).arg(root().join("target/mpich")).output();
    let sources = sources.expect("a shell");
    if !sources.status.success() {
        skip(test, "needs Debian's source package of MPICH");
        return;
    }
    if std::env::var_os("DTC_MPI4PY").is_none() {
        skip(test, "needs mpi4py");
    }
    let mut foreign = Command::new(root().join("tests/mpi/foreign"));
    foreign.arg(interposer());
    foreign.arg(if is_full() { "full" } else { "short" }).arg(text(&sources).trim());
    let output = foreign.output().expect("a shell");
    let said = text(&output) + &String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success(), "{said}");
}

/// A program for every binding.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn programs_in_fortran_complete_what_they_begin() {
    let test = "programs_in_fortran_complete_what_they_begin";
    for launcher in Launcher::all(test).iter_mut().filter(|launcher| launcher.compiler.is_relative()) {
        let mpich = launcher.model == Mpi::Mpich;
        launcher.compiler = if mpich { "mpif90.mpich".into() } else { "mpif90.openmpi".into() };
        if Command::new("gfortran").arg("--version").output().is_err() {
            skip(test, "needs gfortran");
            return;
        }
        for binding in ["-DF08", "-DMODULE", "-DMPIF"] {
            let folder = TempDir::new().expect("a folder");
            let program = folder.path().join("messages");
            let mut compiler = Command::new(&launcher.compiler);
            compiler.args(["-cpp", "-fallow-argument-mismatch", binding, "-o"]).arg(&program);
            // Open MPI 4.1 has no persistent collectives by that name.
            compiler.args(mpich.then_some("-DPERSISTENT"));
            succeed(compiler.arg(sources().join("messages.F90")));
            let output = launcher.pass(2, &program, &[("DTC_MPI_REPORT", "1")]);
            assert!(text(&output).contains("messages: done"), "{}", text(&output));
            let (sent, received) = (handled(&output, ": sent:"), handled(&output, ": received:"));
            let expected = if mpich { (40, 40) } else { (36, 36) };
            assert_eq!((sent, received), expected, "{binding} {}", launcher.compiler.display());
        }
    }
}

/// As Python does: the MPI is opened by a plugin, and its names are not in the global scope.
#[test]
#[ignore = "runs programs of each MPI: ./test mpi"]
fn an_mpi_that_was_opened_privately_is_found() {
    for launcher in Launcher::some("an_mpi_that_was_opened_privately_is_found") {
        let folder = TempDir::new().expect("a folder");
        let plugin = launcher.compile("plugin.c", folder.path(), &["-shared", "-fPIC"]);
        let host = folder.path().join("host");
        let mut compiler = Command::new("cc");
        succeed(compiler.args(["-o"]).arg(&host).arg(sources().join("host.c")).args(["-ldl"]));
        let script = folder.path().join("run");
        std::fs::write(&script, format!("#!/bin/sh\nexec {} {}\n", host.display(), plugin.display()))
            .expect("a script");
        succeed(Command::new("chmod").arg("+x").arg(&script));
        let output = launcher.pass(1, &script, &[("DTC_MPI_REPORT", "1")]);
        assert!(text(&output).contains("plugin: done"), "{}", text(&output));
        assert!(handled(&output, ": MPI_Pack:") > 0, "{}", String::from_utf8_lossy(&output.stderr));
    }
}
