#include "service/http/message.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>

#include <fmt/format.h>

namespace troupe::service {
namespace {

constexpr std::array<std::string_view, 8> kMethodNames{"GET",   "HEAD",   "POST",    "PUT",
                                                       "PATCH", "DELETE", "OPTIONS", "other"};
constexpr std::array<std::string_view, 4> kRoleNames{"none", "read", "run", "admin"};

int hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

/// Reads a text without keeping it, and stops where it is deeper, or has more keys, than a request needs: copies of a deep value recurse, and each
/// key is looked for among all that its object has.
class JsonBounds final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= kDeepest; }
  bool key(string_t&) override { return ++keys_ <= kMostKeys; }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return ++depth_ <= kDeepest; }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }
  [[nodiscard]] bool exceeded() const { return depth_ > kDeepest || keys_ > kMostKeys; }

 private:
  static constexpr int kDeepest = 32, kMostKeys = 4096;
  bool leave() {
    --depth_;
    return true;
  }
  int depth_ = 0, keys_ = 0;
};

}  // namespace

std::string_view name(Method method) noexcept { return kMethodNames.at(static_cast<std::size_t>(method)); }
std::string_view name(Role role) noexcept { return kRoleNames.at(static_cast<std::size_t>(role)); }

std::string_view Request::header(std::string_view lower_case) const {
  const auto found = headers.find(lower_case);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

const std::string& Request::parameter(std::string_view name) const {
  const auto found = parameters.find(name);
  if (found == parameters.end()) throw std::logic_error(fmt::format("the route has no {{{}}}", name));
  return found->second;
}

std::vector<std::string> Request::query_values(std::string_view name) const {
  std::vector<std::string> values;
  for (std::string_view rest = query; !rest.empty();) {
    const auto one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    const auto equals = one.find('=');
    const auto key = percent_decoded(one.substr(0, equals), true);
    const auto value =
        percent_decoded(equals == std::string_view::npos ? std::string_view() : one.substr(equals + 1), true);
    if (key && value && *key == name) values.push_back(*value);
  }
  return values;
}

std::optional<std::string> Request::query_value(std::string_view name) const {
  auto values = query_values(name);
  if (values.empty()) return std::nullopt;
  return std::move(values.front());
}

core::Result<std::int64_t> Request::number(std::string_view name, std::int64_t otherwise, std::int64_t least,
                                           std::int64_t most) const {
  const auto text = query_value(name);
  if (!text || text->empty()) return otherwise;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < least || value > most)
    return core::fail(core::Errc::usage,
                      fmt::format("{} is \"{}\": it must be a whole number from {} to {}", name, *text, least, most));
  return value;
}

core::Result<Json> Request::json() const {
  JsonBounds bounds;
  if (!Json::sax_parse(body, &bounds))
    return core::fail(core::Errc::usage, bounds.exceeded() ? "the body is nested too deeply, or has too many keys"
                                                           : "the body is no JSON object");
  auto parsed = Json::parse(body, nullptr, false);
  if (parsed.is_object()) return parsed;
  return core::fail(core::Errc::usage, "the body is no JSON object");
}

Response answer(const Json& json, int status) {
  Response response;
  response.status = status;
  response.body = std::make_shared<const std::string>(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  return response;
}

Response answer_text(std::string text, std::string type) {
  Response response;
  response.type = std::move(type);
  response.body = std::make_shared<const std::string>(std::move(text));
  return response;
}

Response answer_nothing() {
  Response response;
  response.status = 204;
  return response;
}

Response failure(int status, std::string_view code, std::string_view message) {
  return answer(Json{{"error", {{"code", code}, {"message", message}}}}, status);
}

Response failure(const core::Error& error) {
  using core::Errc;
  const int status = error.code == Errc::usage || error.code == Errc::config ? 400
                     : error.code == Errc::timeout                           ? 503
                                                                             : 500;
  return failure(status, core::name(error.code), error.message);
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += plus && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hexadecimal(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hexadecimal(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text)
    encoded += is_unreserved(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return encoded;
}

}  // namespace troupe::service
