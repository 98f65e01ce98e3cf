/// Checks the orders of the coordinator's process to a site here: they must fit the run's configuration and the site's first order. The
/// site's members do not check them again. Pure.
#pragma once

#include <optional>
#include <string>

#include "actors/protocol/handles.hpp"
#include "actors/protocol/refusal.hpp"
#include "actors/protocol/vocabulary.hpp"

namespace troupe::actors {

class SiteOrderChecks {
 public:
  SiteOrderChecks() = default;
  /// `spec`: built from the order's configuration; `exchange`: parsed from the order.
  SiteOrderChecks(const SiteOrder& order, const RunSpec& spec, ExchangePlan exchange);

  /// Checks the site's first order.
  [[nodiscard]] Refusal check() const;
  [[nodiscard]] Refusal check(const SiteAddresses& addresses) const;
  [[nodiscard]] Refusal check(const SiteDirectory& actors) const;
  [[nodiscard]] Refusal check(const MeasureOrder& order) const;
  /// Of the run.
  [[nodiscard]] std::size_t sites() const;

 private:
  std::uint32_t site_ = 0;
  std::uint64_t most_floats_ = 0;
  std::vector<std::uint32_t> own_workers_;
  std::vector<std::uint32_t> own_servers_;
  std::uint32_t workers_ = 0;
  std::uint32_t servers_ = 0;
  ExchangePlan exchange_;
};

}  // namespace troupe::actors
