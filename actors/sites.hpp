/// Where the members of a company are: at one site, lending memory to each other; or, where exchange.endpoint names an endpoint,
/// each worker at a site of its own with the servers that are its share, and the coordinator at the first one. Everyone then sees
/// the members of other sites as stand-ins. One thread.
#pragma once

#include <vector>

#include "actors/handles.hpp"
#include "actors/vocabulary.hpp"
#include "core/buffer.hpp"
#include "core/kernels.hpp"

namespace troupe::actors {

class Sites {
 public:
  /// One site. `company`: the members themselves.
  Sites(caf::actor_system& system, const Company& company) : system_(system), company_(company) {}

  /// Cuts the company into sites: endpoints are made and connected, stand-ins spawned. `most_floats`: of any vector that is lent.
  /// Memory and clock outlive the actors. Errors: what make_endpoint says; Errc::timeout.
  [[nodiscard]] core::Result<void> open(const experiment::ExchangeConfig& config, std::size_t most_floats,
                                        const core::Kernels& kernels, core::Allocator& memory,
                                        const core::Clock& clock);

  [[nodiscard]] Company worker_view(std::size_t worker) const { return view(place(company_.worker_sites, worker)); }
  [[nodiscard]] Company server_view(std::size_t shard) const { return view(place(company_.server_sites, shard)); }
  [[nodiscard]] Company coordinator_view() const { return view(0); }
  [[nodiscard]] const std::vector<ExchangerActor>& exchangers() const noexcept { return exchangers_; }

 private:
  static std::uint32_t place(const std::vector<std::uint32_t>& sites, std::size_t member) {
    return sites.empty() ? 0 : sites[member];
  }
  [[nodiscard]] Company view(std::uint32_t site) const { return views_.empty() ? company_ : views_[site]; }

  caf::actor_system& system_;
  Company company_;
  std::vector<ExchangerActor> exchangers_;  // by site
  std::vector<Company> views_;              // by site
};

}  // namespace troupe::actors
