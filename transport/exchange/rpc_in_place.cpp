// Calls whose vectors are lent where they are: offers of arenas, their trial, places instead of floats, and farewells.
#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "transport/exchange/rpc_state.hpp"

namespace troupe::exchange {

using core::Errc;
using transport::TagKind;

namespace {

/// Of each half of the arena that an offer is tried with.
constexpr std::size_t kTrialFloats = 64;

/// So many advance_farewells() wait for a farewell to arrive before the peer is disconnected nevertheless.
constexpr int kMostFarewellChecks = 3;

/// Numbers that memory does not have by chance; all floats can be compared.
std::vector<float> trial_numbers() {
  std::random_device random;
  std::vector<float> numbers(kTrialFloats);
  for (auto& number : numbers) number = static_cast<float>(random() >> 8) + 1;
  return numbers;
}

/// A device that fails fails again where it counts: here it only cannot be mapped.
template <class Try>
core::Result<void> tried(const Try& attempt) {
  try {
    return attempt();
  } catch (const core::KernelsFailed& failed) {
    return tl::unexpected(failed.error());
  }
}

}  // namespace

void Rpc::offer(transport::Peer peer, std::function<void(core::Result<void>)> answered) {
  auto& channel = *channels_.at(peer);
  auto trial = core::Buffer::allocate(*arenas_, 2 * kTrialFloats, "the trial of mapped memory");
  if (!trial) return answered(tl::unexpected(std::move(trial.error())));
  const auto arena = std::make_shared<core::Buffer>(std::move(*trial));
  const auto numbers = trial_numbers();
  const auto filled = tried([&]() -> core::Result<void> {
    kernels_.upload(arena->view().first(kTrialFloats), numbers);
    return {};
  });
  if (!filled) return answered(filled);
  const auto place = arenas_->place_of(arena->view());
  auto outgoing = std::make_shared<Outgoing>();
  outgoing->envelope.type = Envelope::Type::offer;
  outgoing->envelope.set({reinterpret_cast<const char*>(&place), sizeof place});
  outgoing->owner = arena;
  channel.may_be_mapped = true;
  outgoing->answered = [this, &channel, arena, numbers,
                        answered = std::move(answered)](const core::Result<std::string_view>& result) {
    if (!result) {
      channel.may_be_mapped = channel.lost.has_value();  // else it has mapped nothing
      return answered(tl::unexpected(result.error()));
    }
    const auto read = tried([&]() -> core::Result<void> {
      std::vector<float> written(kTrialFloats);
      kernels_.download(written, arena->view().subspan(kTrialFloats, kTrialFloats));
      if (written == numbers) return {};
      return core::fail(Errc::config, "what its device wrote to this device's memory did not arrive");
    });
    channel.lends = read.has_value() && !channel.parting;
    answered(read);
  };
  begin(channel, outgoing);
}

void Rpc::send_place(Channel& channel, const std::shared_ptr<Outgoing>& outgoing) {
  ++outgoing->posted;
  const transport::MemoryView view{reinterpret_cast<std::byte*>(&outgoing->place), sizeof(ArenaPlace)};
  move(true, channel, TagKind::push, outgoing->envelope.id, view,
       [this, &channel, outgoing] { operation_ended(channel, *outgoing, 1); });
}

void Rpc::receive_place(Channel& channel, const std::shared_ptr<ServedCall>& served) {
  const transport::MemoryView view{reinterpret_cast<std::byte*>(&served->place), sizeof(ArenaPlace)};
  move(false, channel, TagKind::push, served->envelope.id, view, [this, &channel, served] {
    if (channel.lost) return;
    if (channel.parting)
      served->mapping = core::fail(Errc::peer_lost, "one of the two sites ends");
    else
      served->mapping = arenas_->vector_at(channel.peer, served->place, served->envelope.floats);
    served->vector_arrived = true;
    hand_over(channel);
  });
}

/// Whether this site's device reads and writes a peer's small arena: the second half becomes as the first.
core::Result<void> Rpc::try_arena(Channel& channel, std::string_view bytes) {
  if (!arenas_) return core::fail(Errc::config, "this process shares no device memory");
  if (channel.parting) return core::fail(Errc::config, "the site ends");
  ArenaPlace place;
  std::memcpy(&place, bytes.data(), sizeof place);
  auto arena = arenas_->vector_at(channel.peer, place, 2 * kTrialFloats);
  if (!arena) return tl::unexpected(std::move(arena.error()));
  const auto added = tried([&]() -> core::Result<void> {
    kernels_.axpy(arena->view().subspan(kTrialFloats, kTrialFloats), 1, arena->view().first(kTrialFloats));
    return {};
  });
  channel.maps = added.has_value();
  if (!added) arenas_->forget(channel.peer);  // a peer that is refused waits for no farewell
  return added;
}

void Rpc::begin_parting(Channel& channel) {
  channel.parting = true;
  channel.lends = false;
  advance_farewell(channel);
}

void Rpc::part() {
  for (auto& [peer, channel] : channels_) begin_parting(*channel);
}

void Rpc::advance_farewells() {
  for (auto& [peer, channel] : channels_) {
    advance_farewell(*channel);
    if (channel->disconnect_reason && !channel->lost && ++channel->farewell_checks == kMostFarewellChecks)
      endpoint_.disconnect(peer, *channel->disconnect_reason);
  }
}

void Rpc::advance_farewell(Channel& channel) {
  if (!channel.parting || channel.farewell_sent || channel.lost) return;
  if (!channel.may_be_mapped && !channel.maps && !channel.farewell_received) return;
  if (arenas_ && !arenas_->release(channel.peer)) return;
  channel.farewell_sent = true;
  send_envelope(channel, channel.farewell, [this, &channel] {
    if (channel.lost) return;
    channel.farewell_delivered = true;
    if (channel.disconnect_reason) endpoint_.disconnect(channel.peer, *channel.disconnect_reason);
  });
}

bool Rpc::parted() const {
  return std::ranges::none_of(channels_, [](const auto& entry) {
    const auto& channel = *entry.second;
    const bool awaits = channel.may_be_mapped && !channel.farewell_received;
    const bool owes =
        (channel.may_be_mapped || channel.maps || channel.farewell_received) && !channel.farewell_delivered;
    return !channel.lost && (awaits || owes);
  });
}

Rpc::Users Rpc::users() const {
  auto users = Users::none;
  for (const auto& [peer, channel] : channels_)
    if (channel->may_be_mapped && !channel->farewell_received)
      users = std::max(users, channel->lost ? Users::lost : Users::connected);
  return users;
}

void Rpc::leave(transport::Peer peer, std::string_view why) {
  auto& channel = *channels_.at(peer);
  begin_parting(channel);
  if (channel.farewell_sent && !channel.farewell_delivered)
    channel.disconnect_reason = why;
  else
    endpoint_.disconnect(peer, why);
}

}  // namespace troupe::exchange
