/* An NVRTC that compiles nothing: its output is the source, and its log lists the options. A source that holds the word
 * "wrong" does not compile. Built by the tests, with one of these defined to make it misbehave:
 *
 *   STUB_WITHOUT_CUBIN     nvrtcGetCUBIN is missing
 *   STUB_WITHOUT_MINIMAL   the option --minimal is unknown
 *   STUB_WITHOUT_BUILTINS  every compilation fails for want of libnvrtc-builtins
 *   STUB_WAITS             a compilation ends when stub_may_end says so
 *   STUB_SLOW              a compilation takes a third of a second, and the process must not end within
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS, INVALID_INPUT = 3, INVALID_OPTION = 5, COMPILATION, BUILTIN_OPERATION_FAILURE };

struct program { char *source, log[1024]; };
long stub_alive;
atomic_int stub_compiling, stub_may_end;

#ifdef STUB_SLOW
static atomic_int inside;
__attribute__((destructor)) static void take_down(void) { if (inside) abort(); }
#endif

int nvrtcVersion(int *major, int *minor) { *major = 12; *minor = 9; return SUCCESS; }
int nvrtcGetNumSupportedArchs(int *number) { *number = 3; return SUCCESS; }
int nvrtcGetSupportedArchs(int *list) { list[0] = 90; list[1] = 75; list[2] = 80; return SUCCESS; }
const char *nvrtcGetErrorString(int code) {
    switch (code) {
    case INVALID_OPTION: return "NVRTC_ERROR_INVALID_OPTION";
    case COMPILATION: return "NVRTC_ERROR_COMPILATION";
    case BUILTIN_OPERATION_FAILURE: return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    default: return "NVRTC_ERROR unknown";
    }
}
int nvrtcCreateProgram(struct program **program, const char *source, const char *name, int headers, void *texts,
                       void *names) {
    if (headers || texts || names || !name) return INVALID_INPUT;
    *program = calloc(1, sizeof **program);
    (*program)->source = strdup(source);
    stub_alive++;
    return SUCCESS;
}
int nvrtcDestroyProgram(struct program **program) {
    free((*program)->source);
    free(*program);
    stub_alive--;
    return SUCCESS;
}
int nvrtcCompileProgram(struct program *program, int number, const char *const *options) {
    stub_compiling++;
#ifdef STUB_WAITS
    while (!stub_may_end) usleep(100);
#endif
#ifdef STUB_SLOW
    inside++;
    usleep(333333);
    inside--;
#endif
#ifdef STUB_WITHOUT_BUILTINS
    return BUILTIN_OPERATION_FAILURE;
#endif
    for (int i = 0; i < number; i++) {
        strcat(strcat(program->log, options[i]), "\n");
#ifdef STUB_WITHOUT_MINIMAL
        if (!strcmp(options[i], "--minimal")) return INVALID_OPTION;
#endif
        if (!strcmp(options[i], "--no-such-option")) return INVALID_OPTION;
    }
    if (strstr(program->source, "wrong")) {
        strcpy(program->log, "a.cu(1): error: wrong\n");
        return COMPILATION;
    }
    return SUCCESS;
}
static int size_of(const char *text, size_t *bytes) { *bytes = strlen(text) + 1; return SUCCESS; }
int nvrtcGetProgramLogSize(struct program *program, size_t *bytes) { return size_of(program->log, bytes); }
int nvrtcGetProgramLog(struct program *program, char *log) { strcpy(log, program->log); return SUCCESS; }
int nvrtcGetPTXSize(struct program *program, size_t *bytes) { return size_of(program->source, bytes); }
int nvrtcGetPTX(struct program *program, char *text) { strcpy(text, program->source); return SUCCESS; }
int nvrtcGetCUBINSize(struct program *program, size_t *bytes) { return size_of(program->source, bytes); }
#ifndef STUB_WITHOUT_CUBIN
int nvrtcGetCUBIN(struct program *program, char *text) { strcpy(text, program->source); return SUCCESS; }
#endif
