#include "transport/shm/receiver.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

tl::unexpected<core::Error> bad_frame_of_sender(const char* frame, std::uint64_t number) {
  return core::fail(core::Errc::corrupt, fmt::format("it sent an invalid frame: {} {}", frame, number));
}

}  // namespace

OperationId ShmReceiver::receive(Tag tag, MemoryView memory) {
  const Posted posted{pair_.self.completions->next_operation(), memory};
  if (const auto message = matcher_.post(tag, posted))
    matched(tag,
            {.id = static_cast<std::uint64_t>(message->operation), .size = message->size, .address = message->address},
            message->payload, posted);
  else
    waiting_.emplace(posted.operation, tag);
  return posted.operation;
}

bool ShmReceiver::cancel(OperationId operation) {
  const auto found = waiting_.find(operation);
  if (found == waiting_.end()) return false;
  matcher_.remove_receive(found->second, operation);
  waiting_.erase(found);
  pair_.cancelled(operation);
  return true;
}

core::Result<void> ShmReceiver::take_message(const ShmFrame& frame) {
  const ShmHeader& h = frame.header;
  const bool offer = h.kind == ShmFrameKind::offer;
  if (h.id <= last_id_ || matcher_.waiting_messages() >= source_.messages) return bad_frame_of_sender("message", h.id);
  if (offer ? h.size <= kShmEagerBytes || h.size > std::numeric_limits<std::ptrdiff_t>::max() || !frame.payload.empty()
            : h.size != frame.payload.size())
    return bad_frame_of_sender("message", h.id);
  last_id_ = h.id;
  const Tag tag{h.tag};
  Arrived message{.operation = OperationId{h.id}, .size = h.size, .address = h.address};
  if (!offer) message.payload.assign(frame.payload.begin(), frame.payload.end());
  if (const auto posted = matcher_.arrive(tag, std::move(message))) {
    waiting_.erase(posted->operation);
    matched(tag, h, frame.payload, *posted);
  }
  return {};
}

void ShmReceiver::matched(Tag tag, const ShmHeader& message, std::span<const std::byte> payload, const Posted& posted) {
  if (message.size != posted.memory.size) {
    pair_.mismatched(posted.operation, to_string(tag), message.size, posted.memory.size);
  } else if (message.size > kShmEagerBytes) {
    transfers_.emplace(message.id,
                       Transfer{.operation = posted.operation, .memory = posted.memory, .address = message.address});
    if (source_.readable)
      fetches_.push_back(message.id);
    else
      outbox_.post({.kind = ShmFrameKind::pull, .id = message.id});
    return;
  } else {
    if (message.size > 0) std::memcpy(posted.memory.data, payload.data(), message.size);
    pair_.received(posted.operation, message.size);
  }
  outbox_.post({.kind = ShmFrameKind::done, .id = message.id, .size = posted.memory.size});
}

void ShmReceiver::take_cancel(const ShmHeader& header) {
  if (matcher_.remove_message(Tag{header.tag}, OperationId{header.id}))
    outbox_.post({.kind = ShmFrameKind::cancelled, .id = header.id});
}

core::Result<void> ShmReceiver::take_window(const ShmFrame& frame) {
  if (window_.memory.data() != nullptr || !frame.descriptor) return bad_frame_of_sender("window", 0);
  auto mapping = map_memory_file(frame.descriptor, kShmWindowBytes);
  if (!mapping) return tl::unexpected(mapping.error());
  window_.memory = std::move(*mapping);
  return {};
}

core::Result<void> ShmReceiver::take_chunk(const ShmHeader& header) {
  const auto found = transfers_.find(header.id);
  if (found == transfers_.end() || source_.readable || window_.memory.data() == nullptr ||
      header.address >= kShmSlots || (window_.taken >> header.address & 1) != 0)
    return bad_frame_of_sender("chunk of message", header.id);
  Transfer& transfer = found->second;
  if (header.size == 0 || header.size > kShmSlotBytes || header.size > transfer.memory.size - transfer.announced)
    return bad_frame_of_sender("chunk of message", header.id);
  transfer.announced += header.size;
  window_.taken |= 1u << header.address;
  drains_.push_back({header.id, header.size, header.address});
  return {};
}

ShmPiece ShmReceiver::next_piece() {
  if (!drains_.empty()) {
    const Chunk chunk = drains_.front();
    drains_.pop_front();
    const Transfer& transfer = transfers_.at(chunk.id);
    copying_ = Copying{chunk.id, chunk.size, chunk.slot};
    return {.to = transfer.memory.data + transfer.copied, .from = window_.slot(chunk.slot), .size = chunk.size};
  }
  // Transfers take turns, so that a short message does not wait for all of a long one.
  const std::uint64_t id = fetches_.front();
  fetches_.pop_front();
  const Transfer& transfer = transfers_.at(id);
  copying_ = Copying{id, std::min(kShmPieceBytes, transfer.memory.size - transfer.copied)};
  return {.to = transfer.memory.data + transfer.copied,
          .process = source_.process,
          .address = transfer.address + transfer.copied,
          .size = copying_->size};
}

/// Bytes read from a sender's memory are valid only if the sender still lends it. The sender shuts the socket down before it
/// returns memory to its owner. The process descriptor is checked because a new process may have the number of one that ended.
bool ShmReceiver::sender_is_there() const noexcept {
  return !hung_up(outbox_.socket()) && !has_ended(source_.process_end.get());
}

core::Result<void> ShmReceiver::piece_copied(bool copied) {
  const Copying piece = *std::exchange(copying_, {});
  const auto found = transfers_.find(piece.id);
  Transfer& transfer = found->second;
  if (pair_.lost) {
    pair_.ended(transfer.operation);
    transfers_.erase(found);
    return {};
  }
  if (!copied) return core::fail(core::Errc::corrupt, "its memory cannot be read");
  transfer.copied += piece.size;
  pair_.pieces += 1;
  if (piece.slot) {
    window_.taken &= ~(1u << *piece.slot);
    outbox_.post({.kind = ShmFrameKind::free, .address = *piece.slot});
  }
  if (transfer.copied < transfer.memory.size) {
    if (!piece.slot) fetches_.push_back(piece.id);
    return {};
  }
  if (!piece.slot && !sender_is_there()) return core::fail(core::Errc::peer_lost, "its process ended, or it left");
  pair_.received(transfer.operation, transfer.memory.size);
  outbox_.post({.kind = ShmFrameKind::done, .id = piece.id, .size = transfer.memory.size});
  transfers_.erase(found);
  return {};
}

void ShmReceiver::end() {
  source_.process_end.reset();  // else it wakes the thread for ever once the process has ended
  matcher_.drain([&](Tag, const Posted& posted) { pair_.ended(posted.operation); }, [](Tag, const Arrived&) {});
  waiting_.clear();
  for (auto transfer = transfers_.begin(); transfer != transfers_.end();) {
    const auto next = std::next(transfer);
    if (!copying_ || copying_->id != transfer->first) {
      pair_.ended(transfer->second.operation);
      transfers_.erase(transfer);
    }
    transfer = next;
  }
  fetches_.clear();
  drains_.clear();
}

}  // namespace troupe::transport
