#include "actors/sites.hpp"

#include <fmt/format.h>

#include "actors/exchanger.hpp"
#include "actors/stand_in.hpp"
#include "transport/inproc.hpp"

namespace troupe::actors {

namespace {

constexpr auto kOpenDeadline = std::chrono::seconds(30);

std::optional<core::HalfKind> wire_of(const std::string& wire) {
  if (wire == "fp16") return core::HalfKind::fp16;
  if (wire == "bf16") return core::HalfKind::bf16;
  return {};
}

/// A wire of 16 bits is one for reductions too, where the algorithm can.
exchange::Algorithm algorithm_of(const experiment::ExchangeConfig& config) {
  using exchange::Algorithm;
  const auto named = exchange::algorithm_of(config.algorithm);
  if (named != Algorithm::automatic && named != Algorithm::asa) return named;
  return config.wire == "fp32" ? Algorithm::asa : Algorithm::asa16;
}

}  // namespace

core::Result<void> Sites::open(const experiment::ExchangeConfig& config, std::size_t most_floats,
                               const core::Kernels& kernels, core::Allocator& memory, const core::Clock& clock) {
  const auto workers = static_cast<std::uint32_t>(company_.workers.size());
  for (std::uint32_t w = 0; w < workers; ++w) company_.worker_sites.push_back(w + 1);
  for (std::uint32_t s = 0; s < company_.servers.size(); ++s) company_.server_sites.push_back(s % workers + 1);

  transport::EndpointOptions options;
  options.hub = transport::make_inproc_hub();
  caf::scoped_actor self(system_);
  SiteAddresses addresses;
  for (std::uint32_t site = 0; site <= workers; ++site) {
    ExchangerSetup setup{.site = site,
                         .endpoint = config.endpoint,
                         .options = options,
                         .algorithm = algorithm_of(config),
                         .wire = wire_of(config.wire),
                         .most_floats = most_floats,
                         .kernels = &kernels,
                         .memory = &memory,
                         .clock = &clock};
    exchangers_.push_back(system_.spawn<caf::detached>(exchanger, std::move(setup)));
    core::Result<void> opened;
    self->request(exchangers_.back(), kOpenDeadline, Prepare{})
        .receive(
            [&](const SiteAddress& address) {
              addresses.texts.push_back(address.text);
              if (!address.error.empty()) opened = core::fail(address.code, address.error);
            },
            [&](const caf::error& error) {
              opened = core::fail(core::Errc::timeout,
                                  fmt::format("the exchanger of site {}: {}", site, system_.render(error)));
            });
    if (!opened) return opened;
  }

  for (std::uint32_t site = 0; site <= workers; ++site) {
    auto& view = views_.emplace_back(company_);
    view.exchanger = exchangers_[site];
    for (std::uint32_t w = 0; w < workers; ++w)
      if (company_.worker_sites[w] != site)
        view.workers[w] = system_.spawn(stand_in_worker, w, company_.workers[w], view.exchanger);
    for (std::uint32_t s = 0; s < company_.servers.size(); ++s)
      if (company_.server_sites[s] != site)
        view.servers[s] = system_.spawn(stand_in_server, s, company_.servers[s], view.exchanger);
  }
  for (std::uint32_t site = 0; site <= workers; ++site) {
    self->send(exchangers_[site], views_[site]);
    self->send(exchangers_[site], addresses);
  }
  return {};
}

}  // namespace troupe::actors
