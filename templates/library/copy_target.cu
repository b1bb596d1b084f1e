
// Where a copy goes: element 0 lies behind `packed`, `first` is the first packed byte there, and the lists of its type lie
// at `tables`. The bounds are those of the source. Generic kernels interpret both programs.
struct Target : Bounds {
    u64 first;
    const u8 *tables;
    const void *source_program, *program;
};
