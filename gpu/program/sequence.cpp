#include "gpu/program/sequence.hpp"

namespace troupe::gpu {

std::unique_ptr<StepGraph> Sequence::capture(Stream& stream) const {
  if (!stream.begin_capture()) return nullptr;
  const auto ran = run_all(operations_, training_, stream);
  auto graph = stream.end_capture();  // also after a failed call
  return ran && graph ? std::move(*graph) : nullptr;
}

core::Result<void> Sequence::run(Stream& stream, bool& captures) {
  if (operations_.empty()) return {};
  if (captures && has_run_ && !graph_) {
    graph_ = capture(stream);
    captures = graph_ != nullptr;
  }
  if (graph_) return stream.launch(*graph_);
  has_run_ = true;
  return run_all(operations_, training_, stream);
}

}  // namespace troupe::gpu
