#include <array>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <zlib.h>

#include "service/access/token.hpp"
#include "service/api/routes.hpp"
#include "service/assets/embedded.hpp"

namespace troupe::service {
namespace {

constexpr std::string_view kNoDashboard =
    "This program was built without its dashboard.\n\n"
    "To have it, install node (18 or later) and run scripts/build in Troupe's sources again.\n"
    "The interface under /api/v1/ works all the same: docs/service.md, and /api/v1/openapi.json.\n";

/// A file in its two forms.
struct Page {
  std::string type, tag;
  std::shared_ptr<const std::string> plain, packed;  // packed: null where it is not smaller
  bool for_ever = false;                             // its name changes with its bytes
};

std::string_view type_of(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kTypes{
      {{".html", "text/html; charset=utf-8"},
       {".js", "text/javascript; charset=utf-8"},
       {".css", "text/css; charset=utf-8"},
       {".svg", "image/svg+xml"},
       {".txt", "text/plain; charset=utf-8"}}};
  for (const auto& [ending, type] : kTypes)
    if (name.ends_with(ending)) return type;
  return "application/octet-stream";
}

std::shared_ptr<const std::string> gzipped(std::string_view text) {
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) != Z_OK) return nullptr;
  auto packed = std::make_shared<std::string>(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib's interface: it only reads
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed->data());
  stream.avail_out = static_cast<uInt>(packed->size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed->resize(stream.total_out);
  deflateEnd(&stream);
  if (!whole || packed->size() >= text.size()) return nullptr;
  return packed;
}

Page page_of(const EmbeddedFile& file) {
  return {.type = std::string(type_of(file.name)),
          .tag = fmt::format("\"{}\"", sha256_hex(file.bytes).substr(0, 32)),
          .plain = std::make_shared<const std::string>(file.bytes),
          .packed = gzipped(file.bytes),
          .for_ever = file.name.starts_with("assets/")};
}

using Pages = std::map<std::string, Page, std::less<>>;

/// Made once, at the first start in this process.
const Pages& pages() {
  static const Pages all = [] {
    Pages made;
    for (const auto& file : embedded_dashboard()) made.emplace(file.name, page_of(file));
    return made;
  }();
  return all;
}

Response page_answer(const Page& page, const Request& request) {
  Response response;
  response.type = page.type;
  response.headers = {{"ETag", page.tag},
                      {"Vary", "Accept-Encoding"},
                      {"Cache-Control", page.for_ever ? "public, max-age=31536000, immutable" : "no-cache"}};
  if (request.header("if-none-match").find(page.tag) != std::string_view::npos) {
    response.status = 304;
    return response;
  }
  const bool packed = page.packed && request.header("accept-encoding").find("gzip") != std::string_view::npos;
  if (packed) response.headers.emplace_back("Content-Encoding", "gzip");
  response.body = packed ? page.packed : page.plain;
  return response;
}

Response file_answer(const std::string& name, const Request& request) {
  const auto page = pages().find(name);
  if (page == pages().end()) return failure(404, "unknown", "there is no such file");
  return page_answer(page->second, request);
}

}  // namespace

void add_dashboard_routes(Router& router, Context&) {
  static_cast<void>(pages());
  router.add({.method = Method::get, .pattern = "/", .role = Role::none, .handler = [](const Request& request) {
                return pages().empty() ? answer_text(std::string(kNoDashboard)) : file_answer("index.html", request);
              }});
  router.add(
      {.method = Method::get, .pattern = "/assets/{file}", .role = Role::none, .handler = [](const Request& request) {
         return file_answer("assets/" + request.parameter("file"), request);
       }});
  // licences.txt. What was not built has no route.
  for (const auto& file : embedded_dashboard())
    if (file.name != "index.html" && file.name.find('/') == std::string_view::npos)
      router.add(
          {.method = Method::get,
           .pattern = fmt::format("/{}", file.name),
           .role = Role::none,
           .handler = [name = std::string(file.name)](const Request& request) { return file_answer(name, request); }});
}

}  // namespace troupe::service
