/* Values of a vector of PETSc, packed and compared with a scatter. `indices.h` is the function in docs/integrate/runtimes.md. */
#include "indices.h"

int main(int argc, char **argv)
{
    Vec field, sent;
    IS indices;
    VecScatter scatter;
    dtc_engine *engine;
    dtc_type *type;
    const PetscScalar *from, *expected;
    double packed[12];
    PetscBool same;

    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(VecCreateSeq(PETSC_COMM_SELF, 60, &field));
    for (PetscInt at = 0; at < 60; at++)
        PetscCall(VecSetValue(field, at, at, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(field));
    PetscCall(VecAssemblyEnd(field));
    PetscCall(ISCreateBlock(PETSC_COMM_SELF, 3, 4, (PetscInt[]){0, 12, 4, 19}, PETSC_COPY_VALUES, &indices));

    dtc_init(NULL, &engine);
    PetscCall(type_of(engine, indices, &type));
    PetscCall(VecGetArrayRead(field, &from));
    dtc_pack(type, from, 1, 0, packed, sizeof packed, NULL, NULL);
    PetscCall(VecRestoreArrayRead(field, &from));

    /* A scatter brings the same values. */
    PetscCall(VecCreateSeq(PETSC_COMM_SELF, 12, &sent));
    PetscCall(VecScatterCreate(field, indices, sent, NULL, &scatter));
    PetscCall(VecScatterBegin(scatter, field, sent, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(scatter, field, sent, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecGetArrayRead(sent, &expected));
    PetscCall(PetscMemcmp(packed, expected, sizeof packed, &same));
    PetscCall(VecRestoreArrayRead(sent, &expected));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, same ? "as the scatter\n" : "other values\n"));

    PetscCall(VecScatterDestroy(&scatter));
    PetscCall(ISDestroy(&indices));
    PetscCall(VecDestroy(&sent));
    PetscCall(VecDestroy(&field));
    dtc_type_release(type);
    dtc_finalize(engine);
    PetscCall(PetscFinalize());
    return !same;
}
