// A face of a field of Kokkos, packed and compared. `view.hpp` is the function in docs/integrate/runtimes.md.
#include "view.hpp"
#include <Kokkos_Core.hpp>
#include <cstdio>

int main(int argc, char **argv)
{
    Kokkos::ScopeGuard kokkos(argc, argv);
    dtc_engine *engine;
    dtc_init(NULL, &engine);
    Kokkos::View<double ***> field("field", 10, 12, 14);
    Kokkos::parallel_for(10 * 12 * 14, KOKKOS_LAMBDA(int cell) { field.data()[cell] = cell; });
    Kokkos::fence();

    auto face = Kokkos::subview(field, std::make_pair(1, 9), std::make_pair(1, 11), 1);
    Kokkos::View<double **, Kokkos::LayoutRight> buffer("buffer", 8, 10);
    dtc_type *type = type_of(engine, face);
    dtc_pack(type, face.data(), 1, 0, buffer.data(), buffer.size() * sizeof(double), NULL, NULL);

    int wrong = 0;
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 10; j++)
            wrong += buffer(i, j) != face(i, j);
    std::printf("%d wrong values\n", wrong);
    dtc_type_release(type);
    dtc_finalize(engine);
    return wrong != 0;
}
