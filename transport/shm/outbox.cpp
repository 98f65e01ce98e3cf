#include "transport/shm/outbox.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace troupe::transport {

void ShmOutbox::use(core::FileDescriptor socket) noexcept {
  hang_up(socket_);
  socket_ = std::move(socket);
}

void ShmOutbox::open() {
  open_ = true;
  flush();
}

/// False: no room. A socket that accepts nothing any more is shut down, so that its reader learns of the end.
bool ShmOutbox::write(const Waiting& frame) noexcept {
  const ShmWrite result = send_frame(socket_.get(), frame.header, frame.payload, frame.descriptor);
  if (result == ShmWrite::gone) ::shutdown(socket_.get(), SHUT_RDWR);
  return result != ShmWrite::full;
}

void ShmOutbox::post(const ShmHeader& header, std::span<const std::byte> payload, int descriptor) {
  const Waiting frame{header, payload, descriptor};
  if (!open_ || !waiting_.empty() || !write(frame)) waiting_.push_back(frame);
}

void ShmOutbox::flush() {
  while (open_ && !waiting_.empty() && write(waiting_.front())) waiting_.pop_front();
}

bool ShmOutbox::withdraw(std::uint64_t id) {
  const auto found = std::ranges::find_if(waiting_, [id](const Waiting& w) {
    return w.header.id == id && (w.header.kind == ShmFrameKind::message || w.header.kind == ShmFrameKind::offer);
  });
  if (found == waiting_.end()) return false;
  waiting_.erase(found);
  return true;
}

void ShmOutbox::close(std::string_view last_word) noexcept {
  if (open_ && !last_word.empty()) {
    last_word = last_word.substr(0, kShmEagerBytes);
    (void)send_frame(socket_.get(), {.kind = ShmFrameKind::bye}, std::as_bytes(std::span(last_word)));
  }
  open_ = false;
  hang_up(socket_);
  waiting_.clear();
}

}  // namespace troupe::transport
