#include "gpu/program/choices.hpp"

#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gpu/program/measuring.hpp"
#include "gpu/program/trials.hpp"

namespace troupe::gpu {
namespace {

constexpr int kPlanVersion = 1;
/// In the cache: no engine of the device does it as it must be done.
constexpr auto kNoEngine = "none";

tl::unexpected<core::Error> refuse_plan(const std::string& why) {
  return core::fail(core::Errc::config, fmt::format("{}{}", nn::kPlanRefused, why));
}

}  // namespace

core::Result<void> Choices::take(const nn::Plan& plan) {
  const auto json = nlohmann::json::parse(plan.json, nullptr, false);
  if (!json.is_object() || json.value("backend", "") != "gpu") return refuse_plan("it is not one of the gpu backend");
  if (json.value("version", 0) != kPlanVersion) return refuse_plan(fmt::format("its version is not {}", kPlanVersion));
  if (const auto planned = json.value("precision", ""); planned != name_of(precision_))
    return refuse_plan(fmt::format("it is for precision {}, not {}", planned, name_of(precision_)));
  const auto engines = json.find("engines");
  if (engines == json.end() || !engines->is_object()) return refuse_plan("it has no engines");
  for (const auto& [description, engine] : engines->items()) {
    if (!engine.is_string()) return refuse_plan(fmt::format("the engine of {} is not a name", description));
    // Of a version that took engines for deterministic which are not.
    if (description.find(", deterministic") != std::string::npos && description.ends_with(", statistics")) continue;
    planned_[description] = engine.template get<std::string>();
  }
  engines_ = planned_;
  return {};
}

template <class Plan, class Description>
std::vector<std::unique_ptr<Plan>> Choices::engines_for(const Description& description, const std::string& name) {
  auto plans = device_.plans(description, workspace_);
  if (!plans && plans.error().code == core::Errc::config) return {};
  if (!plans) throw LoweringFailed{std::move(plans.error())};
  if (!device_.is_measurable()) return std::move(*plans);  // the host's, which are known
  if (!trying_) {
    auto stream = device_.make_stream();
    if (!stream) throw LoweringFailed{std::move(stream.error())};
    trying_ = std::move(*stream);
  }
  if constexpr (std::is_same_v<Plan, ConvolutionPlan>) {
    if (!measures_) return first_fit(description, name, std::move(*plans));
    const bool offered = !plans->empty();
    const auto tried = remove_unfit(device_, *trying_, description, *plans);
    if (!tried) throw LoweringFailed{tried.error()};
    // There is another way: relu behind the convolution, or statistics apart.
    const bool may_do_without = description.statistics || description.activation;
    if (*tried && offered && plans->empty() && may_do_without && cache_ != nullptr) cache_->put(name, {kNoEngine, 0});
  }
  return std::move(*plans);
}

std::vector<std::unique_ptr<ConvolutionPlan>> Choices::first_fit(const Convolution& description,
                                                                 const std::string& name,
                                                                 std::vector<std::unique_ptr<ConvolutionPlan>> plans) {
  for (auto& plan : plans) {
    std::vector<std::unique_ptr<ConvolutionPlan>> one;
    one.push_back(std::move(plan));
    const auto tried = remove_unfit(device_, *trying_, description, one);
    if (!tried) throw LoweringFailed{tried.error()};
    // By rule, the choice must be the same in each process and each time, whatever memory is free: both ways have other bits.
    if (!*tried && description.statistics)
      throw LoweringFailed{
          {core::Errc::out_of_memory, fmt::format("too little device memory to try engines for {}", name)}};
    if (!one.empty()) return one;
  }
  return {};
}

template <class Plan, class Description>
std::shared_ptr<const Plan> Choices::measured(const Description& description, const std::string& name) {
  const auto known = cache_ == nullptr ? std::nullopt : cache_->find(name);
  if (known && known->engine == kNoEngine) return nullptr;
  if (known) {
    auto plan = device_.plan(description, workspace_, known->engine);
    if (plan) return std::move(*plan);
    if (plan.error().code != core::Errc::config) throw LoweringFailed{std::move(plan.error())};
  }
  auto plans = engines_for<Plan>(description, name);
  if (plans.empty()) return nullptr;
  const auto best = fastest(device_, *trying_, description, plans);
  if (!best) throw LoweringFailed{best.error()};
  const bool is_chosen = best->seconds > 0 || plans.size() == 1;
  std::shared_ptr<const Plan> plan = std::move(plans[best->index]);
  // A choice for less workspace than usual does not replace one that is known.
  if (cache_ != nullptr && !known && is_chosen) cache_->put(name, {plan->engine(), best->seconds});
  return plan;
}

template <class Plan, class Description>
std::shared_ptr<const Plan> Choices::make(const Description& description, const std::string& name) {
  if (const auto planned = planned_.find(name); planned != planned_.end()) {
    auto plan = device_.plan(description, workspace_, planned->second);
    if (plan) return std::move(*plan);
    if (plan.error().code != core::Errc::config) throw LoweringFailed{std::move(plan.error())};
    throw LoweringFailed{
        {core::Errc::config, fmt::format("{}{} has no engine \"{}\" for {}: {}", nn::kPlanRefused, device_.info().name,
                                         planned->second, name, plan.error().message)}};
  }
  if (measures_) return measured<Plan>(description, name);
  auto plans = engines_for<Plan>(description, name);
  return plans.empty() ? nullptr : std::move(plans.front());
}

template <class Plan, class Description>
Choice<Plan> Choices::choose_from(const std::vector<Description>& descriptions,
                                  std::map<std::string, std::shared_ptr<const Plan>>& made) {
  std::vector<std::string> names;
  names.reserve(descriptions.size());
  for (const Description& description : descriptions) names.push_back(to_string(description));
  const auto from = [&](std::size_t i) -> Choice<Plan> {
    auto known = made.find(names[i]);
    if (known == made.end()) {
      known = made.emplace(names[i], make<Plan>(descriptions[i], names[i])).first;
      if (known->second) engines_[names[i]] = known->second->engine();
    }
    return {i, known->second};
  };
  for (std::size_t i = 0; i < names.size(); ++i)
    if (planned_.contains(names[i])) return from(i);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (auto choice = from(i); choice.plan) return choice;
  throw LoweringFailed{{core::Errc::config, fmt::format("{} has no engine for {}", device_.info().name, names.back())}};
}

Choice<ConvolutionPlan> Choices::choose(const std::vector<Convolution>& descriptions) {
  return choose_from(descriptions, convolutions_);
}

Choice<MatrixPlan> Choices::choose(const std::vector<MatrixProduct>& descriptions) {
  return choose_from(descriptions, products_);
}

StatisticsChoice Choices::choose_statistics(const Convolution& description) {
  StatisticsChoice choice;
  choice.apart = choose({description}).plan;
  Convolution summed = description;
  summed.statistics = true;
  const std::string name = to_string(summed);
  if (planned_.contains(to_string(description)) && !planned_.contains(name)) return choice;  // of an earlier version
  auto known = convolutions_.find(name);
  if (known == convolutions_.end()) {
    known = convolutions_.emplace(name, make_summed(summed, name, *choice.apart)).first;
    engines_[name] = known->second ? known->second->engine() : kStatisticsApart;
  }
  choice.summed = known->second;
  return choice;
}

std::shared_ptr<const ConvolutionPlan> Choices::make_summed(const Convolution& description, const std::string& name,
                                                            const ConvolutionPlan& apart) {
  const auto planned = planned_.find(name);
  if (planned != planned_.end() && planned->second == kStatisticsApart) return nullptr;
  if (planned != planned_.end() || !measures_) return make<ConvolutionPlan>(description, name);
  return measured_summed(description, name, apart);
}

std::shared_ptr<const ConvolutionPlan> Choices::measured_summed(const Convolution& description, const std::string& name,
                                                                const ConvolutionPlan& apart) {
  const auto known = cache_ == nullptr ? std::nullopt : cache_->find(name);
  if (known && (known->engine == kNoEngine || known->engine == kStatisticsApart)) return nullptr;
  if (known) {
    auto plan = device_.plan(description, workspace_, known->engine);
    if (plan) return std::move(*plan);
    if (plan.error().code != core::Errc::config) throw LoweringFailed{std::move(plan.error())};
  }
  auto plans = engines_for<ConvolutionPlan>(description, name);
  if (plans.empty()) return nullptr;
  const auto times = time_statistics(device_, *trying_, description, plans, apart);
  if (!times) throw LoweringFailed{times.error()};
  if (times->summed.seconds == 0 || times->apart == 0) return nullptr;  // it cannot be said which is faster
  std::shared_ptr<const ConvolutionPlan> plan;
  if (times->summed.seconds < times->apart) plan = std::move(plans[times->summed.index]);
  if (cache_ != nullptr && !known)
    cache_->put(name, plan ? EngineCache::Choice{plan->engine(), times->summed.seconds}
                           : EngineCache::Choice{kStatisticsApart, times->apart});
  return plan;
}

nn::Plan Choices::to_plan() const {
  const nlohmann::json json{{"backend", "gpu"},
                            {"version", kPlanVersion},
                            {"precision", name_of(precision_)},
                            {"device", device_.info().name},
                            {"libraries", device_.info().libraries},
                            {"engines", engines_}};
  return {json.dump()};
}

}  // namespace troupe::gpu
