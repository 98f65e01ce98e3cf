/// What the process that has the coordinator may order a site here to do: what fits the run's own configuration, and what the site was
/// made for. The members of a site take it for granted. Pure.
#pragma once

#include <optional>
#include <string>

#include "actors/protocol/handles.hpp"
#include "actors/protocol/refusal.hpp"
#include "actors/protocol/vocabulary.hpp"

namespace troupe::actors {

class SiteRules {
 public:
  SiteRules() = default;
  /// `plan`: as the order's configuration has it; `exchange`: as the order has it.
  SiteRules(const SiteOrder& order, const Blueprint& plan, ExchangePlan exchange);

  /// The order itself.
  [[nodiscard]] Refusal check() const;
  [[nodiscard]] Refusal check(const SiteAddresses& addresses) const;
  [[nodiscard]] Refusal check(const SiteCompany& company) const;
  [[nodiscard]] Refusal check(const MeasureOrder& order) const;

 private:
  [[nodiscard]] std::size_t sites() const;

  std::uint32_t site_ = 0;
  std::uint64_t most_floats_ = 0;
  std::vector<std::uint32_t> own_workers_;
  std::vector<std::uint32_t> own_servers_;
  std::uint32_t workers_ = 0;
  std::uint32_t servers_ = 0;
  ExchangePlan exchange_;
};

}  // namespace troupe::actors
