/// The contract's nets as programs of the user's: programs/program.py computes them in numpy or in torch, and guest/ is the backend. Tests write
/// batches as for any other backend; the program finds them in a file. For tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/backend.hpp"

namespace troupe::nn::testing {

/// The learning rate of the programs' optimizers, plain gradient descent.
constexpr float kProgramRate = 0.125f;

/// `kind`: "numpy" or "torch"; `words`: of program.py. compile() starts a process for each replica. numpy's have no layers but linear, conv2d,
/// pools, activations and flatten, in a chain.
[[nodiscard]] std::unique_ptr<Backend> make_program_backend(std::string name, std::string kind,
                                                            std::vector<std::string> words = {});
/// Why this machine has no such programs; empty: it has.
[[nodiscard]] std::string absence_of_program(const std::string& kind);

}  // namespace troupe::nn::testing
