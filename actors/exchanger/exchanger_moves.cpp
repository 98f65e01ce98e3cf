// Reports of transfers between this site and others, for members that wait for them.
#include "actors/exchanger/exchanger_body.hpp"

namespace troupe::actors {

namespace {

constexpr auto kTellEvery = std::chrono::seconds(1);

}  // namespace

void ExchangerBody::tick() {
  if (halted_) return;
  timer_.send(kTellEvery, Tick{});
  calls_->advance_farewells();
  operations_->flush();
  if (device_sums_)
    if (const auto works = device_sums_->check(); !works) {
      device_sums_->abort(works.error());
      run_error(works.error());
    }
  TransferNews news;
  for (std::uint32_t site = 0; site < peers_.size(); ++site) {
    if (!peers_[site]) continue;
    const auto now = endpoint_->progress(*peers_[site]);
    if (std::exchange(progress_[site], now) != now) news.sites.push_back(site);
  }
  if (news.sites.empty()) return;
  news.sites.push_back(setup_.site);
  ++*setup_.moves;
  if (!actors_.coordinator) return;
  self_->send(actors_.coordinator, news);
  for (std::uint32_t w = 0; w < actors_.worker_sites.size(); ++w)
    if (actors_.worker_sites[w] == setup_.site) self_->send(actors_.workers[w], news);
}

}  // namespace troupe::actors
