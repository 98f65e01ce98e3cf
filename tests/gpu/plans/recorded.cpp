#include "tests/gpu/plans/recorded.hpp"

#include "gpu/program/graph_lowering.hpp"
#include "nn/zoo/models.hpp"
#include "tests/gpu/idle_device.hpp"
#include "tests/gpu/model.hpp"

namespace troupe::gpu::testing {
namespace {

class RecordingDevice final : public IdleDevice {
 public:
  core::Result<std::vector<std::unique_ptr<ConvolutionPlan>>> plans(const Convolution& c, std::size_t w) override {
    auto made = IdleDevice::plans(c, w);
    if (made) seen.convolutions.insert(c);  // what is refused is asked for again, unfused
    return made;
  }
  core::Result<std::vector<std::unique_ptr<MatrixPlan>>> plans(const MatrixProduct& p, std::size_t w) override {
    auto made = IdleDevice::plans(p, w);
    if (made) seen.products.insert(p);
    return made;
  }
  RecordedDescriptions seen;
};

}  // namespace

RecordedDescriptions record_descriptions(const std::string& model, nn::Precision precision, std::int64_t batch,
                                         bool deterministic) {
  RecordingDevice device;
  for (const nn::ZooEntry& entry : nn::model_zoo()) {
    if (entry.name != model) continue;
    const nn::Graph graph = zoo(entry.name, entry.input, entry.classes);
    const nn::CompileOptions options{.batch = batch, .precision = precision, .deterministic = deterministic};
    const Type type = precision == nn::Precision::bf16   ? Type::bf16
                      : precision == nn::Precision::fp16 ? Type::fp16
                                                         : Type::fp32;
    ProgramBuilder builder(graph.parameters().size(), type);
    Choices choices(device, precision, false);
    const Math math = precision == nn::Precision::tf32 ? Math::tf32 : Math::fp32;
    Lowering lowering{graph, options, builder, choices, type, math};
    (void)GraphLowering(lowering).run();
  }
  return device.seen;
}

std::vector<std::string> all_models() {
  std::vector<std::string> names;
  for (const nn::ZooEntry& entry : nn::model_zoo()) names.push_back(entry.name);
  return names;
}

}  // namespace troupe::gpu::testing
