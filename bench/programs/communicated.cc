// DUNE's communicator of datatypes: the overlap of an index set, in many small pieces.
#include <dune/common/parallel/communicator.hh>
#include <dune/common/parallel/indexset.hh>
#include <dune/common/parallel/interface.hh>
#include <dune/common/parallel/mpihelper.hh>
#include <dune/common/parallel/remoteindices.hh>
#include <dune/common/enumset.hh>
#include <dune/common/parallel/plocalindex.hh>
#include <vector>

enum Flag { owner, overlap };
using Index = Dune::ParallelLocalIndex<Flag>;

int main(int argc, char **argv)
{
    auto &helper = Dune::MPIHelper::instance(argc, argv);
    const int own = 20000, width = 2000, rank = helper.rank();
    Dune::ParallelIndexSet<int, Index> indices;
    indices.beginResize();
    int local = 0;
    for (int global = rank * own - width; global < (rank + 1) * own + width; global++)
        if (global >= 0 && global < helper.size() * own)
            indices.add(global, Index(local++, global / own == rank ? owner : overlap, true));
    indices.endResize();
    Dune::RemoteIndices<decltype(indices)> remote(indices, indices, helper.getCommunicator());
    remote.rebuild<false>();
    std::vector<double> values(local, rank);
    Dune::EnumItem<Flag, owner> from;
    Dune::EnumItem<Flag, overlap> to;
    Dune::DatatypeCommunicator<decltype(indices)> communicator;
    communicator.build(remote, from, values, to, values);
    for (int run = 0; run < 2000; run++) communicator.forward();
    return 0;
}
