#include "tests/guest/programs/wire.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>

namespace troupe::guest::scripted {

const std::map<std::string, std::uint16_t> kTypes{
    {"HELLO", 1},     {"PLAN", 2},      {"READY", 3},      {"DONE", 4},       {"BUCKET", 5}, {"STEPPED", 6},
    {"EVALUATED", 7}, {"STATE", 8},     {"SYNCED", 9},     {"FAILED", 10},    {"WAITS", 11}, {"LOADED", 12},
    {"WELCOME", 101}, {"STEP", 102},    {"OPTIMIZE", 103}, {"EVALUATE", 104}, {"SAVE", 105}, {"LOAD", 106},
    {"SYNC", 107},    {"CHANGED", 108}, {"LAST", 109},     {"END", 110}};

std::string name_of_type(std::uint16_t type) {
  for (const auto& [name, value] : kTypes)
    if (value == type) return name;
  return "?";
}

Wire::Wire() {
  const char* const name = std::getenv("TROUPE_GUEST");
  if (name == nullptr) std::_Exit(75);
  socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name, std::strlen(name));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + std::strlen(name));
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), length) != 0) std::_Exit(75);
}

std::string Wire::frame(std::uint16_t type, std::string_view payload) {
  std::string bytes;
  append(bytes, static_cast<std::uint32_t>(payload.size()));
  append(bytes, type);
  append(bytes, std::uint16_t{0});
  return bytes.append(payload);
}

bool Wire::write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void Wire::write_with_descriptor(std::string_view bytes) const {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int given = STDIN_FILENO;
  std::memcpy(CMSG_DATA(rights), &given, sizeof(given));
  if (::sendmsg(socket_, &message, MSG_NOSIGNAL) < 0) std::_Exit(75);
}

void Wire::fill(char* into, std::size_t count) {
  while (count > 0) {
    iovec part{into, count};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(3 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) std::_Exit(75);
    for (cmsghdr* part_of = CMSG_FIRSTHDR(&message); part_of != nullptr; part_of = CMSG_NXTHDR(&message, part_of))
      if (part_of->cmsg_type == SCM_RIGHTS) std::memcpy(files, CMSG_DATA(part_of), part_of->cmsg_len - CMSG_LEN(0));
    into += got;
    count -= static_cast<std::size_t>(got);
  }
}

Heard Wire::read() {
  std::array<char, 8> head{};
  fill(head.data(), head.size());
  std::uint32_t length = 0;
  Heard heard;
  std::memcpy(&length, head.data(), 4);
  std::memcpy(&heard.type, head.data() + 4, 2);
  heard.payload.resize(length);
  fill(heard.payload.data(), length);
  return heard;
}

void Wire::shut() const { ::shutdown(socket_, SHUT_RDWR); }

}  // namespace troupe::guest::scripted
