#include "transport/shm/sender.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace troupe::transport {
namespace {

std::span<const std::byte> bytes_of(const ConstMemoryView& memory) noexcept { return {memory.data, memory.size}; }

tl::unexpected<core::Error> bad_frame_of_receiver(const char* frame, std::uint64_t number) {
  return core::fail(core::Errc::corrupt, fmt::format("it sent an invalid frame: {} {}", frame, number));
}

}  // namespace

std::optional<OperationId> ShmSender::send(Tag tag, ConstMemoryView memory) {
  const Credit& credit = pair_.self.credit;
  if (sends_.size() >= credit.messages) return std::nullopt;
  // A message above the credit's bytes is accepted only when no other payload is outstanding.
  if (bytes_ > 0 && (bytes_ > credit.bytes || memory.size > credit.bytes - bytes_)) return std::nullopt;
  const std::uint64_t id = ++last_id_;
  const OperationId operation = pair_.self.completions->next_operation();
  const bool eager = memory.size <= kShmEagerBytes;
  sends_.emplace(id, Send{.operation = operation, .tag = tag, .memory = memory, .offered = !eager});
  ids_.emplace(operation, id);
  bytes_ += memory.size;
  ShmHeader header{.id = id, .tag = static_cast<std::uint64_t>(tag), .size = memory.size};
  if (eager) {
    header.kind = ShmFrameKind::message;
    outbox_.post(header, bytes_of(memory));
  } else {
    header.kind = ShmFrameKind::offer;
    header.address = reinterpret_cast<std::uintptr_t>(memory.data);
    outbox_.post(header);
  }
  return operation;
}

bool ShmSender::cancel(OperationId operation) {
  const auto found = ids_.find(operation);
  if (found == ids_.end()) return false;
  const std::uint64_t id = found->second;
  const auto send = sends_.find(id);
  if (outbox_.withdraw(id)) {
    pair_.cancelled(take(send).operation);
  } else if (!std::exchange(send->second.cancelling, true)) {
    outbox_.post({.kind = ShmFrameKind::cancel, .id = id, .tag = static_cast<std::uint64_t>(send->second.tag)});
  }
  return true;
}

ShmSender::Send ShmSender::take(std::map<std::uint64_t, Send>::iterator send) {
  bytes_ -= send->second.memory.size;
  ids_.erase(send->second.operation);
  return std::move(sends_.extract(send).mapped());
}

core::Result<void> ShmSender::take_pull(const ShmHeader& header) {
  const auto send = sends_.find(header.id);
  if (send == sends_.end() || !send->second.offered || std::exchange(send->second.pulled, true))
    return bad_frame_of_receiver("pull", header.id);
  fills_.push_back(header.id);
  return {};
}

core::Result<void> ShmSender::take_free(const ShmHeader& header) {
  if (header.address >= kShmSlots || (window_.taken >> header.address & 1) == 0 ||
      (filling_ && filling_->slot == header.address))
    return bad_frame_of_receiver("free", header.address);
  window_.taken &= ~(1u << header.address);
  return {};
}

core::Result<void> ShmSender::take_done(const ShmHeader& header) {
  const auto found = sends_.find(header.id);
  if (found == sends_.end()) return bad_frame_of_receiver("done", header.id);
  const Send& send = found->second;
  // Not while the window is still being filled from this memory, which the completion returns.
  if (send.pulled && send.filled < send.memory.size) return bad_frame_of_receiver("done", header.id);
  const Send finished = take(found);
  if (header.size == finished.memory.size)
    pair_.sent(finished.operation, header.size);
  else
    pair_.mismatched(finished.operation, to_string(finished.tag), finished.memory.size, header.size);
  return {};
}

core::Result<void> ShmSender::take_cancelled(const ShmHeader& header) {
  const auto send = sends_.find(header.id);
  if (send == sends_.end() || !send->second.cancelling || send->second.pulled)
    return bad_frame_of_receiver("cancelled", header.id);
  pair_.cancelled(take(send).operation);
  return {};
}

core::Result<ShmPiece> ShmSender::next_piece() {
  if (!window_file_) {
    auto file = make_memory_file(kShmWindowBytes);
    if (!file) return tl::unexpected(file.error());
    window_file_ = std::move(file->descriptor);
    window_.memory = std::move(file->mapping);
    outbox_.post({.kind = ShmFrameKind::bounce, .size = kShmWindowBytes}, {}, window_file_.get());
  }
  const std::uint64_t id = fills_.front();
  const Send& send = sends_.at(id);
  filling_ = Filling{.id = id,
                     .size = std::min(kShmSlotBytes, send.memory.size - send.filled),
                     .slot = static_cast<std::size_t>(std::countr_one(window_.taken))};
  window_.taken |= 1u << filling_->slot;
  return ShmPiece{.to = window_.slot(filling_->slot), .from = send.memory.data + send.filled, .size = filling_->size};
}

void ShmSender::piece_copied() {
  const Filling filled = *std::exchange(filling_, {});
  const auto send = sends_.find(filled.id);
  if (pair_.lost) {
    pair_.ended(take(send).operation);
    return;
  }
  send->second.filled += filled.size;
  pair_.pieces += 1;
  if (send->second.filled == send->second.memory.size) fills_.pop_front();
  outbox_.post({.kind = ShmFrameKind::chunk, .id = filled.id, .size = filled.size, .address = filled.slot});
}

void ShmSender::end() {
  for (auto send = sends_.begin(); send != sends_.end();) {
    const auto next = std::next(send);
    if (!filling_ || filling_->id != send->first) pair_.ended(take(send).operation);
    send = next;
  }
  fills_.clear();
}

}  // namespace troupe::transport
