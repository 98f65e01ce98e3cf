#include "actors/protocol/membership_inbox.hpp"

#include <utility>

namespace troupe::actors {

bool MembershipInbox::take(const MembershipNews& news) {
  if (!epoch_) {
    if (!early_ || news.epoch > early_->epoch) early_ = news;
    return false;
  }
  if (news.epoch <= *epoch_) return false;
  epoch_ = news.epoch;
  return true;
}

std::optional<MembershipNews> MembershipInbox::begin(std::uint64_t epoch) {
  epoch_ = epoch;
  auto early = std::exchange(early_, std::nullopt);
  if (!early || !take(*early)) return {};
  return early;
}

}  // namespace troupe::actors
