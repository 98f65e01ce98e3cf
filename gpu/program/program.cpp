#include "gpu/program/program.hpp"

namespace troupe::gpu {

core::Result<void> Operation::run(Stream& stream) const {
  struct Runner {
    Stream& stream;
    core::Result<void> operator()(const Kernel& kernel) const { return stream.launch(kernel); }
    core::Result<void> operator()(const ConvolutionWork& call) const {
      return stream.run(*call.plan, call.operands, call.workspace);
    }
    core::Result<void> operator()(const MatrixWork& call) const {
      return stream.run(*call.plan, call.operands, call.workspace);
    }
    core::Result<void> operator()(const CopyWork& call) const { return stream.copy(call.to, call.from, call.bytes); }
  };
  return std::visit(Runner{stream}, work);
}

core::Result<void> run_all(std::span<const Operation> operations, bool training, Stream& stream) {
  for (const Operation& operation : operations)
    if (operation.belongs_to(training))
      if (auto ran = operation.run(stream); !ran) return ran;
  return {};
}

}  // namespace troupe::gpu
