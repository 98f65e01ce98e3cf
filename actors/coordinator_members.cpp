// Members that are lost: who goes on without them, and who cannot.
#include <algorithm>

#include <fmt/format.h>

#include "actors/coordinator_body.hpp"

namespace troupe::actors {

std::uint32_t CoordinatorBody::members() const { return static_cast<std::uint32_t>(std::ranges::count(alive_, true)); }

void CoordinatorBody::site_lost(const SiteLost& news) {
  if (ended_) return;
  const auto reaches_centre =
      news.lost == 0 || std::ranges::find(company_.server_sites, news.lost) != company_.server_sites.end();
  if (news.site == 0) return lose_site(news.lost, news.why);
  // Two workers that have lost each other only are no loss: what one wrote to the other is.
  if (reaches_centre) lose_site(news.site, fmt::format("it has lost site {}: {}", news.lost, news.why));
}

void CoordinatorBody::lose_site(std::uint32_t site, const std::string& why) {
  for (std::uint32_t w = 0; w < company_.worker_sites.size(); ++w)
    if (company_.worker_sites[w] == site) lose(w, why);
}

/// A strategy whose workers share no collective goes on with those who are left; what the lost one had on lease returns.
void CoordinatorBody::lose(std::uint32_t worker, const std::string& why) {
  if (ended_ || !is_member(worker)) return;
  alive_[worker] = false;
  const auto lost = fmt::format("worker {} is lost ({})", worker, why);
  const auto resume = fmt::format("go on with `troupe train --resume {}`", setup_.started.directory);
  const auto& sites = company_.server_sites;
  const bool with_centre =
      !company_.worker_sites.empty() && std::ranges::find(sites, company_.worker_sites[worker]) != sites.end();
  if (with_centre) return fail(core::Errc::peer_lost, fmt::format("{}, and its part of the centre: {}", lost, resume));
  if (setup_.ranks) {
    return fail(core::Errc::peer_lost, fmt::format("{}, and that ends an MPI job: go on with `mpirun … troupe train "
                                                   "--resume {}`",
                                                   lost, setup_.started.directory));
  }
  if (setup_.needs.group) {
    return fail(core::Errc::peer_lost, fmt::format("{}: the others of {} cannot take a step without it: {}", lost,
                                                   setup_.settings->strategy, resume));
  }
  if (members() == 0) return fail(core::Errc::peer_lost, fmt::format("{}, and nobody is left: {}", lost, resume));
  self_->send(company_.recorder,
              Note{Note::Level::warning, fmt::format("{}: its batches return, {} of {} workers go on", lost, members(),
                                                     setup_.started.workers)});
  wants_[worker] = 0;
  setup_.book->lost(worker);
  ++epoch_;
  tell_membership();
  if (!training_) return;
  for (std::uint32_t w = 0; w < wants_.size(); ++w) serve(w, false);  // what has come back
  if (setup_.book->quiet()) when_quiet();
}

void CoordinatorBody::tell_membership() {
  MembershipNews news{epoch_, {}};
  for (std::uint32_t w = 0; w < alive_.size(); ++w)
    if (alive_[w]) news.workers.push_back(w);
  if (company_.exchanger) self_->send(company_.exchanger, news);
  for (const auto& server : company_.servers) self_->send(server, news);
  for (const auto w : news.workers) self_->send(company_.workers[w], news);
}

void CoordinatorBody::missed(std::uint32_t worker, const caf::error& error, const Next& next) {
  lose(worker, "no answer: " + self_->system().render(error));
  if (!ended_) next();
}

}  // namespace troupe::actors
