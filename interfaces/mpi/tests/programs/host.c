/* Opens a plugin, with everything that it needs, outside of the global scope, and runs it. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, "run") : NULL;
    if (!run) {
        puts(plugin ? "host: no function" : dlerror());
        return 1;
    }
    return run();
}
