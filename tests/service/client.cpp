#include "tests/service/client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "tests/wait.hpp"

namespace troupe::service {

Client::Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{std::chrono::duration_cast<std::chrono::seconds>(tests::kPatience).count(), 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) socket_.reset();
}

bool Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool Client::more() {
  std::array<char, 1 << 16> piece{};
  const auto count = ::recv(socket_.get(), piece.data(), piece.size(), 0);
  if (count <= 0) return false;
  unread_.append(piece.data(), static_cast<std::size_t>(count));
  return true;
}

std::string Client::receive_until(std::string_view end) {
  auto found = unread_.find(end);
  for (; found == std::string::npos; found = unread_.find(end))
    if (!more()) return {};
  auto text = unread_.substr(0, found + end.size());
  unread_.erase(0, text.size());
  return text;
}

bool Client::is_closed_by_peer() {
  std::array<char, 1 << 16> piece{};
  ssize_t count = 0;
  while ((count = ::recv(socket_.get(), piece.data(), piece.size(), 0)) > 0) {
  }
  return count == 0 || errno == ECONNRESET;
}

Reply Client::receive(bool has_body) {
  Reply reply;
  const auto head = receive_until("\r\n\r\n");
  if (!head.starts_with("HTTP/1.1 ") || head.size() < 12) return reply;
  reply.status = std::atoi(head.substr(9, 3).c_str());
  for (std::size_t begin = head.find("\r\n") + 2; begin + 2 < head.size();) {
    const auto end = head.find("\r\n", begin);
    const auto colon = head.find(": ", begin);
    auto name = head.substr(begin, colon - begin);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    reply.headers[name] = head.substr(colon + 2, end - colon - 2);
    begin = end + 2;
  }
  if (!has_body || reply.status == 204 || reply.status == 304) return reply;
  const auto length = reply.headers.find("content-length");
  if (length == reply.headers.end()) {
    while (more()) {
    }
    reply.body = std::move(unread_);
    unread_.clear();
    return reply;
  }
  const auto bytes = static_cast<std::size_t>(std::strtoull(length->second.c_str(), nullptr, 10));
  while (unread_.size() < bytes)
    if (!more()) return {};
  reply.body = unread_.substr(0, bytes);
  unread_.erase(0, bytes);
  return reply;
}

std::string request_text(std::string_view method, std::string_view target, std::string_view headers,
                         std::string_view body) {
  auto text = fmt::format("{} {} HTTP/1.1\r\n", method, target);
  if (headers.find("Host:") == std::string_view::npos) text += "Host: 127.0.0.1\r\n";
  text += headers;
  if (!body.empty()) text += fmt::format("Content-Length: {}\r\n", body.size());
  return text + "\r\n" + std::string(body);
}

}  // namespace troupe::service
