// Boost.MPI: maps and vectors by archives, structures by a datatype of their own, skeletons and contents.
#include <boost/mpi.hpp>
#include <boost/serialization/map.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/vector.hpp>
namespace mpi = boost::mpi;
struct Particle {
    double x = 0, y = 0, z = 0;
    int kind = 0;
    template <class Archive> void serialize(Archive &archive, unsigned) { archive & x & y & z & kind; }
};
BOOST_IS_MPI_DATATYPE(Particle)
int main(int argc, char **argv)
{
    mpi::environment environment(argc, argv);
    mpi::communicator world;
    int other = world.rank() ^ 1;
    std::map<std::string, std::vector<double>> map;
    for (int at = 0; at < 100; at++) map["key " + std::to_string(at)] = std::vector<double>(at, at);
    std::vector<Particle> particles(500), received(500);
    std::vector<double> content(2000, 1.5);
    for (int run = 0; run < 400; run++) {
        std::map<std::string, std::vector<double>> other_map;
        if (world.rank() % 2 == 0) {
            world.send(other, 0, map), world.recv(other, 0, other_map);
            world.send(other, 1, particles.data(), 500), world.recv(other, 1, received.data(), 500);
        } else {
            world.recv(other, 0, other_map), world.send(other, 0, map);
            world.recv(other, 1, received.data(), 500), world.send(other, 1, particles.data(), 500);
        }
        if (other_map.size() != map.size()) return 1;
    }
    if (world.rank() % 2 == 0) {
        world.send(other, 2, mpi::skeleton(content));
        for (int run = 0; run < 400; run++) world.send(other, 3, mpi::get_content(content));
    } else {
        world.recv(other, 2, mpi::skeleton(content));
        for (int run = 0; run < 400; run++) world.recv(other, 3, mpi::get_content(content));
    }
    return 0;
}
