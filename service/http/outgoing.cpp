#include "service/http/outgoing.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace troupe::service {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{256} << 10;

}  // namespace

std::uint64_t length_of(const Response& response) {
  if (response.file) return response.file->bytes;
  return response.body ? response.body->size() : 0;
}

std::size_t send_now(int socket, std::string_view text) noexcept {
  const auto sent = ::send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent > 0 ? static_cast<std::size_t>(sent) : 0;
}

std::optional<std::string_view> Outgoing::next() {
  const auto size = static_cast<std::size_t>(std::min(kPieceBytes, length_of(response_) - sent_));
  if (size == 0) return std::string_view();
  if (!response_.file) {
    const auto piece = std::string_view(*response_.body).substr(sent_, size);
    sent_ += size;
    return piece;
  }
  buffer_.resize(size);
  const auto read = ::pread(response_.file->file.get(), buffer_.data(), size, static_cast<off_t>(sent_));
  if (read <= 0) return std::nullopt;
  buffer_.resize(static_cast<std::size_t>(read));
  sent_ += static_cast<std::uint64_t>(read);
  return buffer_;
}

}  // namespace troupe::service
