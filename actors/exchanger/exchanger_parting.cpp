// The end of a site whose device memory other sites of its host map, or that maps theirs. Every other site ends at once.
#include <mutex>

#include "actors/exchanger/exchanger_body.hpp"

namespace troupe::actors {

namespace {

/// For farewells: work on a vector takes milliseconds, but a server may hold a push until a round ends. Within kHaltDeadline.
constexpr auto kFarewell = std::chrono::seconds(2);
/// Members here let go of memory on threads of their own, and do not tell.
constexpr auto kLookEvery = std::chrono::milliseconds(20);
/// How long memory stays allocated after a site's end when a peer was lost before its farewell. Most often its process has ended, and nothing
/// uses the memory. But the peer may be a server that is still computing with a vector, or holds it until a round ends.
constexpr auto kKeptAfterLoss = std::chrono::minutes(10);

/// To free device memory that another process may be working on is undefined: an illegal address would cost that process its device, and the run
/// a server. So it is never freed here; the driver frees it with this process.
void keep_for_ever(std::shared_ptr<core::DeviceSharing> sharing) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<core::DeviceSharing>>();  // no destructor at the process's exit
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(sharing));
}

}  // namespace

void ExchangerBody::depart() {
  const bool begins = !departs_by_;
  if (begins) departs_by_ = setup_.clock->now() + kFarewell;
  if (halted_ || !calls_) return;
  if (begins) {
    calls_->part();
    if (calls_->parted()) return;
    // What holds vectors of other sites here, but for members that still compute with them.
    asked_.clear();
    unread_.clear();
    held_.clear();
    for (auto& [which, running] : running_)
      if (running.collective) running.collective->cancel();
    if (measuring_) measuring_->give_up({core::Errc::peer_lost, "the run is over"});
  }
  after_event();
  calls_->advance_farewells();
  operations_->flush();
  timer_.send(kLookEvery, Halt{});
}

bool ExchangerBody::departed() const {
  return departs_by_ && (halted_ || !calls_ || calls_->parted() || setup_.clock->now() >= *departs_by_);
}

void ExchangerBody::keep_memory_in_use() {
  if (!setup_.mappable.sharing || !calls_) return;
  switch (calls_->users()) {
    case exchange::Rpc::Users::none: return;
    case exchange::Rpc::Users::lost: return timer_.send(kKeptAfterLoss, SiteMemory{arenas_});  // the message holds it
    case exchange::Rpc::Users::connected: return keep_for_ever(setup_.mappable.sharing);
  }
}

}  // namespace troupe::actors
