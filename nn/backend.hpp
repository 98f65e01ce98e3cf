/// The interface between models and devices: a Backend compiles a Graph into a Replica, which trains one batch at a time.
/// Implementations: cpu/ (oneDNN), gpu/, guest/ (a program of the user's). Actors, benchmarks and tests include only this header.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "core/devices/device_checksum.hpp"
#include "core/devices/device_copier.hpp"
#include "core/devices/device_reduction.hpp"
#include "core/devices/device_sharing.hpp"
#include "core/error.hpp"
#include "core/kernels.hpp"
#include "nn/graph.hpp"
#include "nn/layout.hpp"

namespace troupe::nn {

/// The type of activations and of factors of products. Parameters, gradients and sums are float32 in all of them.
enum class Precision : std::uint8_t {
  fp32,
  bf16,
  tf32,  ///< float32 whose products read 10 bits of the mantissa: on tensor cores
  fp16,  ///< with dynamic loss scaling, of which nothing outside of the replica knows (gpu/loss_scale.hpp)
};
[[nodiscard]] constexpr std::string_view name_of(Precision precision) noexcept {
  switch (precision) {
    case Precision::fp32: return "fp32";
    case Precision::bf16: return "bf16";
    case Precision::tf32: return "tf32";
    case Precision::fp16: return "fp16";
  }
  return "";
}

/// The precision of this name; nothing for any other.
[[nodiscard]] constexpr std::optional<Precision> parse_precision(std::string_view name) noexcept {
  for (const auto precision : {Precision::fp32, Precision::bf16, Precision::tf32, Precision::fp16})
    if (name == name_of(precision)) return precision;
  return std::nullopt;
}

/// How the threads of one replica share a step.
enum class Parallel : std::uint8_t {
  none,     ///< every operation on all threads
  neurons,  ///< each thread is a rank that computes its part of every linear layer's neurons
};

/// The capabilities of a backend; read once, where the backend is chosen.
struct Capabilities {
  std::vector<Precision> precisions;
  core::MemorySpace arena_space = core::MemorySpace::host;  // the memory space of its arenas
  int devices = 1;
  /// Whether the arenas of all replicas are in memory that the kernels of any of them reach: members of one process may then exchange them in
  /// place.
  bool shares_memory = true;
  bool own_arenas = false;   // replicas compute in Backend::arenas() alone, though it is host memory
  bool takes_bytes = false;  // all its replicas take CompileOptions::bytes, Batch::bytes
  core::Allocator* batches =
      nullptr;  // of memory from which it copies batches ahead (Replica::prefetch); null: it reads
                // batches where they are. The backend's, thread-safe
};

/// The part of a sample's source image that its input shows, in pixels: rows from `top`, columns from `left`, which may be negative or
/// hang over the end; zeros outside the source. mirror = 1: left and right change places.
struct Cut {
  std::int32_t top = 0;
  std::int32_t left = 0;
  std::int32_t mirror = 0;
};

/// How a replica makes images of bytes: byte · scale[channel] + bias[channel, pixel of the source], cut out as each sample's Cut says.
struct BytePreparation {
  Shape source;              // of a sample in Batch::bytes
  std::vector<float> scale;  // [channels]
  std::vector<float> bias;   // [source]
  bool operator==(const BytePreparation&) const = default;
};

/// The backend's part of plan.json: the choices that a backend made by measurement. With them another run computes the same numbers.
/// Only its backend reads it.
struct Plan {
  std::string json;
};

struct CompileOptions {
  std::int64_t batch = 64;
  Precision precision = Precision::fp32;
  int device = 0;
  /// Of a backend of several devices (nn/device_names.hpp): the name of one; empty: the backend's first. `device` counts within it.
  std::string device_name{};
  int local_rank = 0;  // of the worker among those of its host: names like "cuda" choose a device by it
  /// Parameters and gradients have plain_layout(), on every backend: for replicas of different backends that exchange arenas.
  bool canonical_arenas = false;
  int threads = 1;                    // of this replica alone
  std::uint64_t seed = 1;             // of dropout
  core::Allocator* arenas = nullptr;  // parameters, gradients, statistics; outlives the replica
  bool training = true;               // false: evaluate() only, no gradients, no backward workspace
  double label_smoothing = 0;         // share of the label that all classes have equally; evaluate() ignores it
  const Plan* plan = nullptr;         // null: the backend chooses, and reports it in Replica::plan()
  bool recompute = false;             // backward computes cheap activations again: the same bits in less memory
  bool measure = true;        // without a plan: may choose by measurement; false: the same on every machine of a kind
  bool deterministic = true;  // the same plan and inputs give the same bits; false: may be faster, and differ each time
  /// Of a GPU in 16 bits: a convolution may sum up the statistics of the batch norm behind it. false: never, for benchmarks.
  bool statistics_in_convolutions = true;
  std::uint32_t worker = 0;  // whose replica it is, and of how many: a program of the user's is told it
  std::uint32_t workers = 1;
  std::int64_t epochs = 0;                   // of the run, for such a program; 0: those that its backend was made with
  bool zeros_for_missing_gradients = false;  // such a program is told so: as in recordings before arithmetic 3
  std::function<void(const std::string&)> on_output{};  // takes a line that a program of the user's prints; any thread
  Parallel parallel = Parallel::none;
  /// false: what follows every step() is one apply(), and nothing else reads gradients(): a replica with its own optimizer keeps them to
  /// itself, steps within step(), and its gradients() are empty. Other replicas ignore it.
  bool gradients = true;
  bool overlap = true;  // with neurons: a layer's weight gradient is computed while its error is summed; the same bits
  /// Not null: the replica also takes Batch::bytes, if its device can prepare images (Replica::bytes). With the channels of the graph's input.
  /// Only compile() reads it.
  const BytePreparation* bytes = nullptr;
};

/// One batch in host memory. Images are floats, or bytes with a cut each. labels [batch] in [0, classes).
struct Batch {
  std::span<const float> images;  // [batch, channels, height, width]; empty if there are bytes
  std::span<const std::int32_t> labels;
  std::uint64_t lease = 0;  // the key of dropout: the same lease drops the same units on every worker
  std::int64_t count = 0;   // valid samples (≤ batch); the rest is padding, which evaluate() ignores
  std::int64_t first =
      0;  // number of its first sample in the step's batch, of which this may be a part: dropout counts from there
  std::uint32_t epoch = 0;                // from 0; a program of the user's is told it,
  double epoch_position = 0;              // and how many epochs are done when the step, or its round, begins
  double lr = 1;                          // of the optimizer step that follows, for a replica with its own optimizer
  std::span<const std::uint8_t> bytes{};  // [batch, channels, height, width] of BytePreparation::source
  std::span<const Cut> cuts{};            // [batch], with bytes
  core::MemorySpace space =
      core::MemorySpace::host;  // of images and bytes: host_pinned if Capabilities::batches made it
};

/// Means and counts over one batch. The rank of a label is the number of classes with a greater output, or an equal output and a
/// lower index. top1 counts rank 0, top5 ranks below 5. top5 is 0 for models with fewer than five classes.
struct StepResult {
  double loss = 0;        // mean over the samples
  std::int64_t top1 = 0;  // correct samples; below 0: a program does not say
  std::int64_t top5 = 0;  // below 0: as top1
  std::int64_t samples = 0;
  double loss_scale = 1;  // of step(), in fp16: the factor of the loss that its gradient was computed with
  double forward_s = 0;   // of step(): its time, with the loss
  double backward_s = 0;  // of step(): the rest, with the callbacks of buckets
};

/// Consecutive arena floats whose gradients become final together, in backward order: bucket 0 first.
struct Bucket {
  std::size_t offset = 0;  // floats; a multiple of kAlignmentFloats
  std::size_t count = 0;
};

/// A compiled model with its own float32 master arenas and workspace. All members are called from the thread that compiled it,
/// because the primitives and their OpenMP team belong to that thread. Spans stay valid for the replica's life. A steady step
/// allocates nothing and does not synchronise with other replicas.
class Replica {
 public:
  virtual ~Replica() = default;

  [[nodiscard]] virtual const Graph& graph() const noexcept = 0;
  [[nodiscard]] virtual std::int64_t batch() const noexcept = 0;
  /// The layout of every arena but statistics().
  [[nodiscard]] virtual const std::shared_ptr<const Layout>& layout() const noexcept = 0;
  [[nodiscard]] std::uint64_t layout_fingerprint() const noexcept { return layout()->fingerprint(); }

  /// The float32 master arenas. Code that writes to parameters() must call parameters_written() afterwards.
  [[nodiscard]] virtual core::Span parameters() noexcept = 0;
  [[nodiscard]] virtual core::Span gradients() noexcept = 0;   ///< empty if not training
  [[nodiscard]] virtual core::Span statistics() noexcept = 0;  ///< statistics_layout(graph()); may be empty
  /// For vectors in the memory of the arenas. The host reads and writes arenas through their upload() and download() (nn/arenas/host_view.hpp).
  [[nodiscard]] virtual const core::Kernels& kernels() const noexcept { return core::host_kernels(); }
  virtual void parameters_written() noexcept = 0;  ///< working copies are rebuilt before the next use
  [[nodiscard]] virtual std::uint64_t parameters_version() const noexcept = 0;

  /// Buckets in the order in which backward finishes them; together they cover the arena exactly once.
  [[nodiscard]] virtual const std::vector<Bucket>& buckets() const noexcept = 0;

  /// Forward, loss, backward: overwrites gradients() with the mean gradient. Calls `on_bucket_ready(b)` on this thread as soon as
  /// bucket b is final; the function may be empty. Errc::data names the sample of a label outside [0, classes).
  [[nodiscard]] virtual core::Result<StepResult> step(const Batch& batch,
                                                      const std::function<void(int)>& on_bucket_ready) = 0;

  /// Begins to copy the batch of a later step() to the device, while an earlier one computes. A hint: nothing happens where batches are
  /// read in place, for memory of other than Capabilities::batches, and while two batches are on their way. Until step() with this batch
  /// or discard() returns, its memory stays as it is. Errors are those of that step.
  virtual void prefetch(const Batch& /*batch*/) {}
  /// The batch will not be computed: when this returns, nothing reads its memory.
  virtual void discard(const Batch& /*batch*/) {}
  /// What later steps depend on besides the arenas, between two steps: in fp16 the loss scale; 0: nothing. Another replica of the same
  /// options, given the same arenas and state, computes the same bits.
  [[nodiscard]] virtual std::uint64_t state_of_steps() const noexcept { return 0; }
  virtual void set_state_of_steps(std::uint64_t /*state*/) noexcept {}

  /// One optimizer step over the whole arena with gradients(), clipped as the step prescribes; state vectors have the arena's
  /// shape.
  virtual void apply(const core::OptimizerStep& step, core::OptimizerState state) = 0;

  /// Why what parameters() and statistics() have shown is not the newest: the device that has it has failed. Null: it is.
  [[nodiscard]] virtual const core::Error* failure() const noexcept { return nullptr; }
  /// Whether apply() heeds nothing of the step but its learning rate, and `state` is empty: the optimizer is the replica's.
  [[nodiscard]] virtual bool owns_optimizer() const noexcept { return false; }

  /// Forward and loss only, without dropout, with the running statistics. A user's program evaluates its own test data, whatever the batch is,
  /// and only where CompileOptions::training is false.
  [[nodiscard]] virtual core::Result<StepResult> evaluate(const Batch& batch) = 0;
  /// The last layer's outputs of the latest step or evaluate: [batch, outputs], row-major.
  [[nodiscard]] virtual std::span<const float> outputs() const noexcept = 0;

  /// How it prepares Batch::bytes, for step() and evaluate(): CompileOptions::bytes. Null: it takes floats only.
  [[nodiscard]] virtual const BytePreparation* bytes() const noexcept { return nullptr; }

  void export_canonical(core::Span canonical);
  void import_canonical(core::ConstSpan canonical);

  [[nodiscard]] virtual const Plan& plan() const noexcept = 0;
  [[nodiscard]] virtual std::size_t workspace_bytes() const noexcept = 0;  ///< everything but the arenas
};

inline constexpr std::string_view kPlanRefused = "plan: ";

/// Makes replicas. Thread-safe. Must outlive them.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string name() const = 0;  ///< "cpu"
  [[nodiscard]] virtual Capabilities capabilities() const = 0;
  /// The memory in which a replica of these options computes without copies, of capabilities().arena_space for the first device. compile()
  /// takes plain host memory too. REQUIRES options that compile() takes.
  [[nodiscard]] virtual core::Allocator& arenas(const CompileOptions& options) noexcept;
  [[nodiscard]] core::Allocator& arenas() noexcept { return arenas(CompileOptions{}); }
  /// Kernels for vectors of arenas(). On a device, ordered by the calling thread's stream.
  [[nodiscard]] virtual const core::Kernels& kernels() const noexcept = 0;
  /// Kernels for vectors of `memory`: the arenas of a device, or any memory that the host reads. Those of one device do not reach another's.
  [[nodiscard]] virtual const core::Kernels& kernels_for(const core::Allocator& memory) const noexcept;
  /// The model of the device that replicas of these options compute on ("NVIDIA H200"): those of one model take each other's plans. name()
  /// where there is one kind only; empty for a device that cannot be opened.
  [[nodiscard]] virtual std::string device_model(const CompileOptions& options);
  /// Copies between `memory` and the host without a thread of the caller; null where the host reads `memory`. The backend outlives it. Errors:
  /// Errc::config, no copier is there, and why.
  [[nodiscard]] virtual core::Result<std::shared_ptr<core::DeviceCopier>> copier_for(const core::Allocator& memory);
  /// Checksums of what is in `memory`, computed on its device; null where the host reads it, or the device has no memory for them. The
  /// backend outlives it.
  [[nodiscard]] virtual std::shared_ptr<core::DeviceChecksum> checksum_for(const core::Allocator& memory);
  /// Further memory of the device of `memory`, which other processes of the host map: replicas take it for their arenas, and kernels_for(memory)
  /// compute with it. Each call makes one of its own, which the backend outlives. Errc::config: there is none, and why.
  [[nodiscard]] virtual core::Result<std::shared_ptr<core::DeviceSharing>> sharing_for(const core::Allocator& memory);
  /// Sums of vectors in `memory`, and in further memory of its device, by a library of the devices. Each call makes one of its own, which the
  /// backend outlives. Errc::config: there is none, and why.
  [[nodiscard]] virtual core::Result<std::shared_ptr<core::DeviceReduction>> reduction_for(
      const core::Allocator& memory);
  /// Errc::config: the graph cannot be compiled as requested (names the node). Errc::out_of_memory: memory runs out. Errors of the
  /// given plan, or of this machine with it, begin with kPlanRefused.
  [[nodiscard]] virtual core::Result<std::unique_ptr<Replica>> compile(const Graph& graph,
                                                                       const CompileOptions& options) = 0;
};

}  // namespace troupe::nn
