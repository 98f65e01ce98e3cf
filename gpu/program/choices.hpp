/// The engines of a compiled step, which affect its speed and exact numbers. Written to nn::Plan; taken from a given plan; otherwise measured
/// where the device can be measured, or the first that it offers. Thread rule: one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "gpu/device/device.hpp"
#include "gpu/plans/engine_cache.hpp"
#include "nn/backend.hpp"

namespace troupe::gpu {

/// Thrown while a graph is lowered; compile() returns the error, with the node's name where it is Errc::config.
struct LoweringFailed {
  core::Error error;
};

/// How a node is computed, from a list of descriptions in order of preference: with more, then with less fused.
template <class Plan>
struct Choice {
  std::size_t description = 0;  // in the list
  std::shared_ptr<const Plan> plan;
};

/// How a convolution in front of a batch norm is computed.
struct StatisticsChoice {
  std::shared_ptr<const ConvolutionPlan> summed;  // with statistics; null: a kernel behind `apart` sums them up
  std::shared_ptr<const ConvolutionPlan> apart;   // without
};

/// In a plan and in the cache, in place of the engine of a description with statistics: no engine does it, or the two apart are faster.
inline constexpr const char* kStatisticsApart = "apart";

class Choices {
 public:
  /// `device` and `cache` outlive this object. `measure`: may choose by measurement. `cache`: earlier measurements; null: none.
  Choices(Device& device, nn::Precision precision, bool measure, EngineCache* cache = nullptr)
      : device_(device), precision_(precision), measures_(measure && device.is_measurable()), cache_(cache) {}
  /// Errc::config, with nn::kPlanRefused, if it is not a plan of this backend in this precision.
  [[nodiscard]] core::Result<void> take(const nn::Plan& plan);

  /// Engines get at most so many bytes of workspace each.
  void limit_workspace(std::size_t bytes) noexcept { workspace_ = bytes; }

  /// The first description that the plan names, otherwise the first that the device executes, with its engine. Throws LoweringFailed, also
  /// if the planned engine does not exist here.
  [[nodiscard]] Choice<ConvolutionPlan> choose(const std::vector<Convolution>& descriptions);
  [[nodiscard]] Choice<MatrixPlan> choose(const std::vector<MatrixProduct>& descriptions);

  /// Of a forward convolution in front of a batch norm, without statistics. Measured: the convolution and the statistics apart, or together
  /// where an engine does both and is the faster way to mean and deviation, with the kernel behind it. By rule: together where an engine does both.
  /// A plan decides where it names either description; one that knows nothing of statistics means apart. Too little memory to measure,
  /// or for the engine's workspace: apart.
  [[nodiscard]] StatisticsChoice choose_statistics(const Convolution& description);

  /// All choices so far; a plan's that were not used remain.
  [[nodiscard]] nn::Plan to_plan() const;

 private:
  template <class Plan, class Description>
  [[nodiscard]] Choice<Plan> choose_from(const std::vector<Description>& descriptions,
                                         std::map<std::string, std::shared_ptr<const Plan>>& made);
  /// The engines of the device for the description that a trial found fit (remove_unfit), by rule the first of them. None: the device cannot
  /// execute it; that all are unfit is kept in the cache, where the caller has another way. Throws LoweringFailed, also of memory that a trial
  /// does not find.
  template <class Plan, class Description>
  [[nodiscard]] std::vector<std::unique_ptr<Plan>> engines_for(const Description& description, const std::string& name);
  /// At most one of `plans`: by rule no further ones are tried.
  [[nodiscard]] std::vector<std::unique_ptr<ConvolutionPlan>> first_fit(
      const Convolution& description, const std::string& name, std::vector<std::unique_ptr<ConvolutionPlan>> plans);
  /// The fastest engine, of an earlier measurement or a new one. None: the device cannot execute the description.
  template <class Plan, class Description>
  [[nodiscard]] std::shared_ptr<const Plan> measured(const Description& description, const std::string& name);
  /// None: the device cannot execute it.
  template <class Plan, class Description>
  [[nodiscard]] std::shared_ptr<const Plan> make(const Description& description, const std::string& name);

  /// The engine that sums up the statistics, too, or null: `name` is that of the description with them.
  [[nodiscard]] std::shared_ptr<const ConvolutionPlan> make_summed(const Convolution& description,
                                                                   const std::string& name,
                                                                   const ConvolutionPlan& apart);
  /// From the cache, or by measurement.
  [[nodiscard]] std::shared_ptr<const ConvolutionPlan> measured_summed(const Convolution& description,
                                                                       const std::string& name,
                                                                       const ConvolutionPlan& apart);

  Device& device_;
  nn::Precision precision_;
  bool measures_;
  EngineCache* cache_;
  std::size_t workspace_ = 0;
  std::unique_ptr<Stream> trying_;  // made by the first engines that are tried: libraries take long to prepare a stream
  std::map<std::string, std::string> planned_;  // description → engine, from a given plan
  std::map<std::string, std::string> engines_;  // description → engine
  std::map<std::string, std::shared_ptr<const ConvolutionPlan>> convolutions_;
  std::map<std::string, std::shared_ptr<const MatrixPlan>> products_;
};

}  // namespace troupe::gpu
