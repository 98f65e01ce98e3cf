// Lost members, and sites with new addresses: the exchanger's connections to other sites.
#include <algorithm>

#include "actors/exchanger/exchanger_body.hpp"

namespace troupe::actors {

SiteAddress ExchangerBody::address_changed(const SiteMoved& moved) {
  if (ends()) return {.text = {}, .error = "the run is over", .code = core::Errc::peer_lost};
  leave(moved.site, "it has a new address");
  const auto met = connect_to(moved.site, moved.address);
  after_event();
  if (!met) return {.text = {}, .error = met.error().message, .code = met.error().code};
  return {.text = moved.address, .error = {}};
}

void ExchangerBody::leave(std::uint32_t site, std::string_view why) {
  const auto peer = std::exchange(peers_.at(site), std::nullopt);
  if (!peer) return;
  calls_->leave(*peer, why);
  if (arenas_) arenas_->forget(*peer);
}

void ExchangerBody::membership(const MembershipNews& news) {
  if (!ends() && news_.take(news)) hear(news);
}

void ExchangerBody::hear(const MembershipNews& news) {
  const auto gone = [&](strategies::WorkerId w) { return !std::ranges::binary_search(news.workers, w); };
  // A newcomer that is not yet admitted is in neither list: its connection stays.
  for (const auto w : std::exchange(members_, news.workers)) {
    const auto site = actors_.worker_sites.at(w);
    // A newcomer connects only to sites with a part of the centre: it may not know the lost member's site.
    if (gone(w) && !ends() && site != setup_.site && site < peers_.size()) leave(site, "it is no longer a member");
  }
  for (std::uint32_t w = 0; w < actors_.worker_sites.size(); ++w)
    if (gone(w)) checks_.forget(w);
  std::erase_if(asked_, [&](const auto& entry) { return gone(std::get<0>(entry.first)); });
  std::erase_if(unread_, [&](const auto& entry) { return gone(entry.first.first); });
  after_event();
}

}  // namespace troupe::actors
