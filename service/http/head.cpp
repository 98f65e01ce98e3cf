#include "service/http/head.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace troupe::service {
namespace {

constexpr std::array<std::pair<int, std::string_view>, 18> kReasons{{{200, "OK"},
                                                                     {201, "Created"},
                                                                     {202, "Accepted"},
                                                                     {204, "No Content"},
                                                                     {206, "Partial Content"},
                                                                     {304, "Not Modified"},
                                                                     {400, "Bad Request"},
                                                                     {401, "Unauthorized"},
                                                                     {403, "Forbidden"},
                                                                     {404, "Not Found"},
                                                                     {405, "Method Not Allowed"},
                                                                     {409, "Conflict"},
                                                                     {413, "Content Too Large"},
                                                                     {429, "Too Many Requests"},
                                                                     {431, "Request Header Fields Too Large"},
                                                                     {500, "Internal Server Error"},
                                                                     {503, "Service Unavailable"},
                                                                     {507, "Insufficient Storage"}}};

/// Nothing from elsewhere runs or is loaded in a page of this service, and no other page may frame it.
constexpr std::string_view kPolicy =
    "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n";

}  // namespace

std::string_view reason_of(int status) noexcept {
  const auto* found = std::ranges::find(kReasons, status, &std::pair<int, std::string_view>::first);
  return found == kReasons.end() ? "Status" : found->second;
}

std::string head_of(const Response& response, std::optional<std::uint64_t> length, bool keep_alive, std::time_t now) {
  auto head = fmt::format("HTTP/1.1 {} {}\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\nConnection: {}\r\n", response.status,
                          reason_of(response.status), fmt::gmtime(now), keep_alive ? "keep-alive" : "close");
  bool caching = false;
  for (const auto& [name, value] : response.headers) {
    if (value.find_first_of("\r\n") != std::string::npos)
      throw std::logic_error(fmt::format("the header {} has a line end", name));
    head += fmt::format("{}: {}\r\n", name, value);
    caching = caching || name == "Cache-Control";
  }
  if (!caching) head += "Cache-Control: no-store\r\n";
  head += kPolicy;
  if (length && response.status != 204 && response.status != 304)
    head += fmt::format("Content-Length: {}\r\n", *length);
  if (length.value_or(1) > 0 && response.status != 204) head += fmt::format("Content-Type: {}\r\n", response.type);
  return head + "\r\n";
}

}  // namespace troupe::service
