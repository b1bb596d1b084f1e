//! Races for one entry: one process compiles, all find it.

use super::*;

#[test]
fn one_of_many_threads_compiles() {
    for _ in 0..20 {
        let watched = local();
        let key = key("entry");
        let (compiled, start) = (AtomicUsize::new(0), Barrier::new(8));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    compile_once(&watched.store, &key, || {
                        compiled.fetch_add(1, Ordering::Relaxed);
                    });
                });
            }
        });
        assert_eq!(compiled.into_inner(), 1);
        assert_eq!(fs::read_dir(watched.kernels()).unwrap().count(), 1);
        assert_eq!(watched.causes(), []);
    }
}

/// What a rank does for each kernel: find it, or compile it once.
fn compile_once(store: &Store, key: &Key, compile: impl FnOnce()) {
    let code = vec![3; 200_000];
    match store.claim_within(key, Duration::from_secs(60)) {
        Claim::Found(found) => assert_eq!(found, code),
        Claim::Granted(_guard) => {
            compile();
            thread::sleep(Duration::from_millis(5));
            assert!(store.put(key, &code));
        }
        Claim::Held => panic!("60 s were not enough"),
    }
    assert_eq!(store.get(key), Some(code));
}

const CHILD: &str = "DTC_STORE_TEST_FOLDER";

/// The command that runs this test again, in a process of its own.
fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", &format!("tests::races::{test}")]).env(CHILD, folder).stdout(Stdio::null());
    command
}

#[test]
fn one_of_many_processes_compiles() {
    if let Some(folder) = std::env::var_os(CHILD) {
        let folder = PathBuf::from(folder);
        let store = Store::open(Config::none().directory(folder.join("kernels")));
        for number in 0..20 {
            let note = || {
                let count = folder.join(format!("count-{number}"));
                let mut count = OpenOptions::new().append(true).create(true).open(count).unwrap();
                count.write_all(b"x").unwrap();
            };
            compile_once(&store, &key(&number.to_string()), note);
        }
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let children: Vec<_> =
        (0..8).map(|_| child("one_of_many_processes_compiles", folder.path()).spawn().expect("a process")).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    for number in 0..20 {
        assert_eq!(fs::read(folder.path().join(format!("count-{number}"))).unwrap(), b"x", "kernel {number}");
    }
}

#[test]
fn claims_of_killed_processes_are_void() {
    let key = key("entry");
    if let Some(folder) = std::env::var_os(CHILD) {
        let store = Store::open(Config::none().directory(PathBuf::from(&folder).join("kernels")));
        let Claim::Granted(_guard) = store.claim(&key) else { panic!("nobody else is here") };
        fs::write(Path::new(&folder).join("claimed"), "").unwrap();
        thread::sleep(Duration::from_secs(60));
        return;
    }
    let watched = local();
    let mut killed = child("claims_of_killed_processes_are_void", watched.folder.path()).spawn().expect("a process");
    while !watched.folder.path().join("claimed").exists() {
        assert!(killed.try_wait().unwrap().is_none(), "it waits to be killed");
        thread::sleep(Duration::from_millis(2));
    }
    assert!(matches!(watched.store.claim(&key), Claim::Held));
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(matches!(watched.store.claim_within(&key, Duration::from_secs(60)), Claim::Granted(_)));
}

#[test]
fn racing_writers_never_show_a_part() {
    let watched = local();
    let key = key("entry");
    let payloads: Vec<Vec<u8>> = (0..4u8).map(|value| vec![value; 50_000 + usize::from(value)]).collect();
    thread::scope(|scope| {
        for payload in &payloads {
            let (store, payloads) = (&watched.store, &payloads);
            scope.spawn(move || {
                for _ in 0..100 {
                    assert!(store.put(&key, payload));
                    assert!(store.get(&key).is_some_and(|found| payloads.contains(&found)));
                }
            });
        }
    });
    assert_eq!(watched.causes(), []);
    assert_eq!(fs::read_dir(watched.kernels()).unwrap().count(), 1);
}

/// Two processes read, write, claim and trim one store, and either is killed at any moment. Every entry that they find
/// is whole, they report no finding, and a later process has every kernel. At most one unfinished file remains for each
/// killed process.
#[test]
fn killed_processes_leave_whole_entries() {
    const KERNELS: usize = 12;
    let payload = |number: usize| vec![number as u8; 40_000 + number];
    if let Some(folder) = std::env::var_os(CHILD) {
        let folder = PathBuf::from(folder);
        let started = std::process::id();
        let warned = folder.join(format!("warned-{started}"));
        let config = Config::none().directory(folder.join("kernels")).capacity(300_000);
        let store = Store::open(config.on_finding(move |finding| fs::write(&warned, finding.to_string()).unwrap()));
        fs::write(folder.join(format!("started-{started}")), "").unwrap();
        let begun = Instant::now();
        // The loop ends by itself if the process that should kill this one dies.
        for number in
            (0..KERNELS).cycle().skip(started as usize).take_while(|_| begun.elapsed() < Duration::from_secs(60))
        {
            let key = key(&number.to_string());
            match store.claim_within(&key, Duration::from_secs(60)) {
                Claim::Found(found) if found == payload(number) => {}
                Claim::Found(_) => fs::write(folder.join("wrong"), number.to_string()).unwrap(),
                Claim::Granted(_guard) => drop(store.put(&key, &payload(number))),
                Claim::Held => fs::write(folder.join("held"), number.to_string()).unwrap(),
            }
        }
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let start = || child("killed_processes_leave_whole_entries", folder.path()).spawn().expect("a process");
    let mut running = [start(), start()];
    for kill in 0..40 {
        let victim = &mut running[kill % 2];
        while !folder.path().join(format!("started-{}", victim.id())).exists() {
            assert!(victim.try_wait().unwrap().is_none(), "it runs until it is killed");
            thread::sleep(Duration::from_millis(1));
        }
        // Each kill comes at another point of the loop.
        thread::sleep(Duration::from_micros(kill as u64 * 7_919 % 20_000));
        victim.kill().unwrap();
        victim.wait().unwrap();
        *victim = start();
    }
    for mut last in running {
        last.kill().unwrap();
        last.wait().unwrap();
    }
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let told: Vec<String> = names.filter(|name| !name.starts_with("started-") && name != "kernels").collect();
    assert_eq!(
        told,
        [""; 0],
        "{:?}",
        told.iter().map(|name| fs::read_to_string(folder.path().join(name))).collect::<Vec<_>>()
    );

    let store = Store::open(Config::none().directory(folder.path().join("kernels")));
    assert_eq!(store.verify().findings, []);
    for number in 0..KERNELS {
        let key = key(&number.to_string());
        match store.claim_within(&key, Duration::from_secs(60)) {
            Claim::Found(found) => assert_eq!(found, payload(number)),
            Claim::Granted(_guard) => assert!(store.put(&key, &payload(number))),
            Claim::Held => panic!("its holder was killed"),
        }
        assert_eq!(store.get(&key), Some(payload(number)));
    }
    let kernels = fs::read_dir(folder.path().join("kernels")).unwrap().map(|entry| entry.unwrap().path());
    let unfinished = kernels.filter(|path| path.extension().is_some_and(|kind| kind == "tmp")).count();
    assert!(unfinished <= 42, "one file for each process that was killed, found {unfinished}");
}
