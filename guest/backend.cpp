#include "guest/backend.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "guest/replica.hpp"

namespace troupe::guest {
namespace {

std::int64_t elements_of(const nn::GivenTensor& tensor) {
  std::int64_t size = 1;
  for (const auto extent : tensor.shape)
    if (__builtin_mul_overflow(size, extent, &size)) return -1;
  return size;
}

/// What is different in the program that has joined; empty: it is the one that was asked.
std::string difference(const nn::Graph& graph, const Introduction& there) {
  const auto& parameters = graph.parameters();
  if (there.tensors.size() != parameters.size())
    return fmt::format("it has {} parameters, and the run has {}", there.tensors.size(), parameters.size());
  for (std::size_t k = 0; k < parameters.size(); ++k)
    if (there.tensors[k].name != parameters[k].name || there.tensors[k].shape != parameters[k].shape)
      return fmt::format("its parameter {} is \"{}\", and the run's is \"{}\", or their shapes differ", k,
                         there.tensors[k].name, parameters[k].name);
  if (there.statistics.size() != graph.statistics().size())
    return fmt::format("it has {} running values, and the run has {}", there.statistics.size(),
                       graph.statistics().size());
  for (std::size_t k = 0; k < there.statistics.size(); ++k)
    if (there.statistics[k].name != graph.statistics()[k].name ||
        elements_of(there.statistics[k]) != graph.statistics()[k].channels)
      return fmt::format("its running value {} is \"{}\", and the run's is \"{}\", or their sizes differ", k,
                         there.statistics[k].name, graph.statistics()[k].name);
  return {};
}

class ProgramBackend final : public GuestBackend {
 public:
  ProgramBackend(GuestProgram program, GuestProcess::OnLine on_line)
      : program_(std::move(program)),
        on_line_(std::move(on_line)),
        empty_(::memfd_create("troupe-empty", MFD_CLOEXEC)) {}

  [[nodiscard]] std::string name() const override { return "guest"; }
  [[nodiscard]] nn::Capabilities capabilities() const override {
    return {.precisions = {nn::Precision::fp32, nn::Precision::bf16, nn::Precision::tf32, nn::Precision::fp16},
            .own_arenas = true};
  }
  [[nodiscard]] core::Allocator& arenas(const nn::CompileOptions&) noexcept override { return vectors_; }
  [[nodiscard]] const core::Kernels& kernels() const noexcept override { return core::host_kernels(); }

  [[nodiscard]] core::Result<Description> describe() override {
    auto guest = Guest::start(
        program_,
        {.role = Role::evaluator, .workers = program_.workers, .threads = program_.threads, .seed = program_.seed},
        on_line_);
    if (!guest) return tl::unexpected(std::move(guest.error()));
    const auto& introduction = (*guest)->introduction();
    auto graph = nn::Graph::of_program("program", introduction.tensors, introduction.statistics);
    if (!graph) {
      (*guest)->refuse(graph.error().message);
      return tl::unexpected(std::move(graph.error()));
    }
    auto memory = GuestMemory::create(vectors_, *graph, false);
    if (!memory) return tl::unexpected(std::move(memory.error()));
    memory->buckets.clear();  // an evaluator has none
    auto plan = (*guest)->welcome(memory->shared(vectors_, empty_.get()));
    if (!plan) return tl::unexpected(std::move(plan.error()));
    Description description{introduction, *plan, std::vector<float>(memory->layout->canonical_floats()),
                            std::vector<float>(memory->statistics_layout.canonical_floats())};
    memory->layout->to_canonical(memory->parameters.view(), description.parameters);
    memory->statistics_layout.to_canonical(memory->statistics.view(), description.statistics);
    const std::scoped_lock lock(mutex_);
    fingerprint_ = description.introduction.program;
    samples_ = description.plan.samples;
    evaluator_.emplace(std::move(*guest), std::move(*memory));
    return description;
  }

  [[nodiscard]] core::Result<std::unique_ptr<nn::Replica>> compile(const nn::Graph& graph,
                                                                   const nn::CompileOptions& options) override {
    if (!graph.is_program())
      return core::fail(core::Errc::config, fmt::format("model \"{}\" is none of model.command", graph.name()));
    const GuestPlace place{.role = options.training ? Role::worker : Role::evaluator,
                           .worker = options.worker,
                           .workers = options.workers,
                           .local_worker = options.local_rank,
                           .threads = options.threads,
                           .seed = options.seed,
                           .epochs = options.epochs,
                           .zeros_for_missing_gradients = options.zeros_for_missing_gradients};
    const bool steps_alone = options.training && !options.gradients;
    if (!options.training) {
      const std::scoped_lock lock(mutex_);
      if (evaluator_) {
        auto [guest, memory] = *std::exchange(evaluator_, std::nullopt);
        return std::make_unique<GuestReplica>(graph, options.batch, false, std::move(memory), std::move(guest));
      }
    }
    const auto explained = [&](core::Error error) {
      error.message =
          fmt::format("{}: {}", options.training ? "the program" : "the program that evaluates", error.message);
      return tl::unexpected(std::move(error));
    };
    auto guest = Guest::start(program_, place, options.training ? options.on_output : on_line_);
    if (!guest) return explained(std::move(guest.error()));
    auto other = difference(graph, (*guest)->introduction());
    if (other.empty() && !is_known((*guest)->introduction().program))
      other = "its frozen layers or its optimizer differ";
    if (!other.empty()) {
      const auto why = "it is another one than that of the run: " + other;
      (*guest)->refuse(why);
      return explained({core::Errc::config, why});
    }
    auto memory = GuestMemory::create(vectors_, graph, options.training && options.gradients);
    if (!memory) return explained(std::move(memory.error()));
    if (!options.training) memory->buckets.clear();
    auto plan = (*guest)->welcome(memory->shared(vectors_, empty_.get()));
    if (!plan) return explained(std::move(plan.error()));
    if (const auto why = misfit(*plan, options); !why.empty()) {
      (*guest)->refuse(why);
      return explained({core::Errc::config, why});
    }
    return std::make_unique<GuestReplica>(graph, options.batch, steps_alone, std::move(*memory), std::move(*guest));
  }

 private:
  /// Whether this fingerprint is the run's.
  [[nodiscard]] bool is_known(const std::string& fingerprint) const {
    const std::scoped_lock lock(mutex_);
    return fingerprint_.empty() || fingerprint_ == fingerprint;
  }
  /// Why the run's batches are not for a program with this plan; empty: they are.
  [[nodiscard]] std::string misfit(const TrainingPlan& plan, const nn::CompileOptions& options) const {
    const std::scoped_lock lock(mutex_);
    if (samples_ > 0 && plan.samples != samples_)
      return fmt::format(
          "run.batches of {} has {} samples, and the run has {}: each worker gets numbers of all samples, so give the "
          "same number on all of them",
          options.training ? fmt::format("worker {}", options.worker) : "the evaluator", plan.samples, samples_);
    return options.training ? too_large_for(plan, options.batch) : std::string();
  }

  const GuestProgram program_;
  const GuestProcess::OnLine on_line_;
  const core::FileDescriptor empty_;
  GuestVectors vectors_;
  mutable std::mutex mutex_;                                                 // guards the next three
  std::string fingerprint_{program_.fingerprint};                            // of the run's program; empty: any
  std::int64_t samples_ = program_.samples;                                  // of its data set; 0: any
  std::optional<std::pair<std::unique_ptr<Guest>, GuestMemory>> evaluator_;  // of describe()
};

}  // namespace

std::string too_large_for(const TrainingPlan& plan, std::int64_t batch) {
  if (batch <= plan.batch) return {};
  return fmt::format(
      "data.batch = {}, and the program's run.batches has size={}: give a size of at least {} there, or "
      "leave data.batch out",
      batch, plan.batch, batch);
}

std::unique_ptr<GuestBackend> make_backend(GuestProgram program, GuestProcess::OnLine on_line) {
  return std::make_unique<ProgramBackend>(std::move(program), std::move(on_line));
}

}  // namespace troupe::guest
