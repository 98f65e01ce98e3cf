#include "service/access/origin.hpp"

#include <algorithm>

#include "transport/net/address.hpp"

namespace troupe::service {
namespace {

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

bool may_be_in_host(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

bool may_be_in_ipv6(char c) { return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9') || c == ':' || c == '.'; }

}  // namespace

std::string host_of(std::string_view authority) {
  const auto lower = in_lower_case(authority);
  std::string_view text = lower;
  std::string_view host, rest;
  if (text.starts_with("[")) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return {};
    host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
    if (!std::ranges::all_of(host, may_be_in_ipv6)) return {};
  } else {
    host = text.substr(0, text.find(':'));
    rest = text.substr(host.size());
    if (!std::ranges::all_of(host, may_be_in_host)) return {};
  }
  if (host.empty() || (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1))))) return {};
  return std::string(host);
}

std::vector<std::string> hosts_of_service(const std::string& address, const std::vector<std::string>& names) {
  std::vector<std::string> hosts{in_lower_case(address)};
  if (transport::is_loopback(address)) hosts.insert(hosts.end(), {"localhost", "127.0.0.1", "::1"});
  for (const auto& name : names) hosts.push_back(in_lower_case(name));
  return hosts;
}

bool is_own_host(std::string_view host, const std::vector<std::string>& own) {
  const auto name = host_of(host);
  return !name.empty() && std::ranges::find(own, name) != own.end();
}

bool is_same_origin(std::string_view origin, std::string_view host) {
  const auto lower = in_lower_case(origin);
  std::string_view text = lower;
  for (const std::string_view scheme : {"http://", "https://"})
    if (text.starts_with(scheme)) {
      text.remove_prefix(scheme.size());
      return !host_of(text).empty() && text == in_lower_case(host);
    }
  return false;
}

}  // namespace troupe::service
