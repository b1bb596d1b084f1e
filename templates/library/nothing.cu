extern "C" __global__ void dtc_nothing() {}
