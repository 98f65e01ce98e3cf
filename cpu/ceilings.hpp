/// What one replica's threads reach at best on this machine, to hold the layers of a step against.
#pragma once

#include "core/error.hpp"
#include "nn/backend.hpp"

namespace troupe::cpu {

struct Ceilings {
  double gflops = 0;    // of a convolution of a good shape: 256 → 256 channels 3x3 on 28x28, computed directly
  double gb_per_s = 0;  // read and written: y += x over vectors of 64 MiB
};

/// Takes some 0.3 s. Thread rule: as Backend::compile, on the thread that computes. Errc::out_of_memory.
[[nodiscard]] core::Result<Ceilings> measure_ceilings(nn::Precision precision, int threads);

}  // namespace troupe::cpu
